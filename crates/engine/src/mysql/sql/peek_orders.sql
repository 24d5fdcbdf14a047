-- Lines of the holds of orders.
SELECT lines_text FROM holds WHERE order_id IN (?)
