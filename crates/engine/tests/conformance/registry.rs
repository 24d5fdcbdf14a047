// Every scenario, and what registers a subject: included by main.rs. A scenario that is missing here is dead code, and
// the compiler says so.

macro_rules! tests {
    ($open:path: $($file:ident { $($name:ident)* })*) => {
        $($(
            #[tokio::test]
            async fn $name() {
                let Some(mut lab) = Lab::new(|policy| Box::pin($open(policy))).await else { return };
                $file::$name(&mut lab).await;
            }
        )*)*
    };
}

macro_rules! subject {
    ($subject:ident, $open:path) => {
        mod $subject {
            use super::*;

            tests! { $open:
                stock {
                    set_creates_then_moves_available
                    setting_the_same_total_changes_nothing
                    a_total_below_what_is_committed_is_refused
                    lapsed_holds_do_not_stand_in_the_way_of_a_total
                    a_version_is_compared_and_counts_totals_and_limits_only
                    adjust_adds_and_takes_what_is_available
                    adjust_may_take_lapsed_units
                    a_total_has_a_greatest_value
                    an_adjustment_with_a_key_happens_once
                    a_refused_adjustment_leaves_its_key_unused
                    an_adjustment_that_creates_happens_once_too
                    a_key_tells_a_reason_from_a_sku
                    an_unknown_sku_is_not_adjusted_or_removed
                    remove_forgets_only_what_nobody_has
                    what_is_in_use_leaves_out_what_has_lapsed
                    lapsed_holds_do_not_stand_in_the_way_of_removal
                    a_sku_may_come_and_go_within_one_batch
                    identifiers_are_byte_exact
                }
                holds {
                    a_hold_moves_all_its_lines
                    a_confirmed_order_comes_before_every_other_refusal
                    the_same_request_is_answered_with_the_same_hold
                    another_cart_for_a_live_order_is_a_conflict
                    unknown_skus_are_all_listed_before_limits_and_shortage
                    a_limit_comes_before_shortage
                    shortage_lists_every_short_sku_and_holds_nothing
                    sold_out_tells_whether_units_may_return
                    a_second_order_is_a_second_claim
                    a_change_is_all_or_nothing_on_the_difference
                    a_change_carries_a_new_amount
                    an_extension_moves_the_deadline_forward_only
                    an_extension_stops_at_the_greatest_lifetime
                    a_settled_hold_is_not_changed_or_extended
                    a_release_gives_back_once
                    an_order_may_be_held_again_after_its_release
                    an_unknown_hold_is_not_found
                }
                lapse {
                    lapsed_units_are_sellable_at_once
                    a_lapsed_cart_gives_back_its_other_skus_too
                    no_more_is_expired_than_a_request_needs_to_be_right
                    the_same_order_may_be_held_anew_after_it_lapsed
                    a_refusal_may_expire_but_not_move_more
                    a_release_of_a_lapsed_hold_says_expired
                    a_sweep_expires_the_oldest_first_and_stops_at_its_limit
                    a_sweep_expires_the_oldest_first_across_skus
                    a_sweep_leaves_alone_what_was_extended_changed_or_settled
                    once_quiet_nothing_is_stranded
                    a_lapsed_hold_moves_no_units_twice
                }
                limits {
                    what_is_held_and_bought_counts
                    released_and_lapsed_holds_give_credit_back
                    a_return_gives_credit_back
                    a_return_gives_credit_back_within_its_batch
                    a_purchase_counts_within_its_batch
                    a_customer_is_required_where_a_limit_is
                    a_limit_may_come_later_and_go_again
                    setting_a_total_leaves_the_limit
                    a_change_is_limited_but_a_decrease_never_refused
                    a_late_confirmation_is_limited_too
                    a_rival_of_another_customer_does_not_lift_the_limit
                    a_payment_after_a_release_in_its_batch_is_limited_too
                }
                confirm {
                    a_live_hold_becomes_an_order
                    a_confirmation_may_name_the_providers_object
                    late_confirm_takes_units_again
                    late_confirm_works_after_a_sweep_and_after_a_release
                    late_confirm_is_all_or_nothing
                    late_confirm_may_take_units_of_other_lapsed_holds
                    a_newer_hold_of_the_order_ends_when_an_older_is_confirmed
                    a_newer_hold_stays_when_the_older_cannot_be_confirmed
                    a_newer_hold_that_lapsed_too_is_expired_not_released
                    a_return_gives_back_no_more_than_was_bought
                    a_return_with_a_key_happens_once
                    a_batch_decides_in_order
                }
                payments {
                    a_captured_payment_confirms_a_live_hold
                    a_payment_may_name_the_hold
                    the_same_event_settles_once
                    the_same_fact_under_another_event_settles_once
                    the_same_event_twice_in_a_batch_settles_once
                    an_event_is_seen_once_whatever_it_says_the_second_time
                    a_payment_without_an_order_is_not_ours
                    a_payment_of_another_amount_or_currency_goes_back
                    only_what_was_asked_is_compared
                    an_order_confirmed_without_a_payment_gets_its_payment
                    a_second_payment_goes_back
                    a_payment_for_a_lapsed_hold_confirms_late
                    a_payment_for_a_swept_or_released_hold_confirms_late
                    a_payment_whose_units_are_gone_goes_back
                    a_payment_finds_the_orders_live_hold_before_its_lapsed_ones
                    a_payment_finds_the_orders_latest_lapsed_hold
                    a_failed_or_canceled_attempt_releases_nothing
                    a_canceled_payment_releases_where_the_shop_wants_that
                    an_authorisation_confirms_and_makes_a_capture_due
                    an_authorisation_that_pays_for_nothing_is_voided
                    a_void_becomes_a_refund_when_the_money_was_captured
                }
                unmatched {
                    an_unmatched_payment_is_settled_when_its_hold_appears
                    an_unmatched_payment_of_the_wrong_amount_goes_back
                    two_unmatched_payments_pay_once
                    an_unmatched_payment_needs_a_person_after_the_grace
                    the_grace_runs_from_the_money_not_from_a_failed_attempt
                    an_unmatched_payment_goes_back_where_the_shop_wants_that
                }
                refunds {
                    a_full_refund_ends_the_order_and_restocks
                    a_partial_refund_is_recorded_only
                    a_refund_after_a_return_gives_back_only_the_rest
                    a_refund_without_restock_leaves_the_units_sold
                    a_refunded_duplicate_does_not_touch_the_order
                    another_payment_does_not_revive_a_refunded_order
                    a_refund_told_before_its_capture_ends_the_order_as_after_it
                    a_refund_told_before_an_order_is_known_counts
                    a_refund_of_an_authorised_order_ends_its_capture_too
                    a_refund_of_a_smaller_capture_is_full
                    a_refund_of_a_smaller_capture_ends_a_reversal
                    an_unmatched_payment_that_went_back_pays_for_nothing
                    a_fact_after_a_refund_gives_the_customer_credit
                }
                jobs {
                    a_job_is_taken_by_one_at_a_time
                    a_refund_that_was_carried_out_ends_its_payment
                    a_refund_for_a_person_is_tried_again_when_told
                    a_refund_that_failed_at_the_bank_gets_another_key
                    a_capture_that_was_carried_out_settles_once
                    a_capture_that_failed_ends_its_order
                    a_capture_that_came_although_it_failed_goes_back
                    what_somebody_gave_back_by_hand_is_not_given_back_again
                    a_void_that_was_refused_waits_for_a_person
                    money_that_comes_of_what_was_let_go_goes_back
                    a_refund_of_somebody_else_that_fails_counts_no_more
                    notes_are_written_by_whoever_read_them_last
                }
                money {
                    failed_authorised_and_captured_confirm_in_any_order
                    a_wrong_amount_goes_back_in_any_order
                    a_refund_gives_the_units_back_in_any_order
                    a_capture_that_failed_ends_the_order_in_any_order
                }
                kinds {
                    one_owner_per_unit_when_expiry_races_the_payment
                    one_owner_per_unit_when_another_buys_first
                    a_stock_sync_does_not_erase_a_sale
                    lines_of_one_sku_are_summed_before_they_are_checked
                    a_big_cart_is_held_and_released_whole
                }
            }
        }
    };
}
