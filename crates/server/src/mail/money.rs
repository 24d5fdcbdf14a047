//! Amounts as people read them. Knows how many decimals a currency has with a provider; never calculates with money.

use holdfast_domain::Money;

/// `150.00 USD`, or words where the amount is not known.
pub(super) fn words(provider: &str, money: Money) -> String {
    let (Some(amount), Some(currency)) = (money.amount, money.currency) else {
        return "the full amount".into();
    };
    let decimals = decimals(provider, currency.as_str());
    let scale = 10_u64.pow(decimals);
    let whole = amount / scale;
    if decimals == 0 {
        return format!("{whole} {}", currency.as_str());
    }
    format!("{whole}.{:0width$} {}", amount % scale, currency.as_str(), width = decimals as usize)
}

/// ISO 4217, but for what a provider counts in another way.
fn decimals(provider: &str, currency: &str) -> u32 {
    match (provider, currency) {
        ("stripe", "ISK" | "UGX") | ("adyen", "ISK" | "CLP") => 2,
        ("stripe", "MGA")
        | ("adyen", "CVE" | "IDR")
        | (
            _,
            "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "UYI" | "VND"
            | "VUV" | "XAF" | "XOF" | "XPF",
        ) => 0,
        (_, "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND") => 3,
        (_, "CLF" | "UYW") => 4,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::Currency;

    #[test]
    fn minor_units_are_placed_right() {
        for (provider, amount, currency, expected) in [
            ("stripe", 15000, "usd", "150.00 USD"),
            ("stripe", 5, "EUR", "0.05 EUR"),
            ("stripe", 0, "EUR", "0.00 EUR"),
            ("stripe", 1500, "JPY", "1500 JPY"),
            ("stripe", 1500, "KWD", "1.500 KWD"),
            ("stripe", 500, "UGX", "5.00 UGX"),
            ("stripe", 500, "ISK", "5.00 ISK"),
            ("stripe", 500, "MGA", "500 MGA"),
            ("stripe", 500, "CLP", "500 CLP"),
            ("adyen", 500, "CLP", "5.00 CLP"),
            ("adyen", 500, "IDR", "500 IDR"),
            ("standard", 500, "IDR", "5.00 IDR"),
            ("standard", 500, "ISK", "500 ISK"),
            ("standard", 12345, "CLF", "1.2345 CLF"),
            ("standard", Money::MAX_AMOUNT, "USD", "90071992547409.91 USD"),
        ] {
            let money = Money { amount: Some(amount), currency: Currency::new(currency) };
            assert_eq!(words(provider, money), expected, "{provider}");
        }
        let unknown = Money { amount: Some(5), currency: None };
        assert_eq!(words("stripe", unknown), "the full amount");
    }
}
