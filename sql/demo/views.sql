-- What is derived from the tables: views, a materialized view, and the revenue tables that are booked from them.

CREATE VIEW sales.order_totals AS
SELECT
    o.order_id,
    o.customer_id,
    o.ordered_at,
    o.order_status,
    round(sum(i.quantity * i.unit_price * (1 - i.discount_percent / 100)), 2) AS order_total
FROM sales.orders AS o
JOIN sales.order_items AS i USING (order_id)
GROUP BY o.order_id;
COMMENT ON VIEW sales.order_totals IS 'Each order with the sum of its lines after discounts, in euros without tax.';
COMMENT ON COLUMN sales.order_totals.order_total IS 'Sum of the lines after discounts, in euros without tax.';

CREATE VIEW sales.customer_monthly_revenue AS
SELECT
    t.customer_id,
    date_trunc('month', t.ordered_at AT TIME ZONE 'UTC')::date AS revenue_month,
    sum(t.order_total) AS net_revenue,
    count(*)::integer AS order_count,
    'EUR'::char(3) AS currency_code
FROM sales.order_totals AS t
WHERE t.order_status <> 'cancelled'
GROUP BY t.customer_id, date_trunc('month', t.ordered_at AT TIME ZONE 'UTC');
COMMENT ON VIEW sales.customer_monthly_revenue IS
    'Monthly revenue per customer: net amounts ordered less discounts, one row for each customer and month.';
COMMENT ON COLUMN sales.customer_monthly_revenue.customer_id IS 'Customer the revenue was ordered by.';
COMMENT ON COLUMN sales.customer_monthly_revenue.revenue_month IS 'First day of the month of the revenue.';
COMMENT ON COLUMN sales.customer_monthly_revenue.net_revenue IS 'Revenue of the month without tax.';
COMMENT ON COLUMN sales.customer_monthly_revenue.order_count IS 'Number of orders in the month.';
COMMENT ON COLUMN sales.customer_monthly_revenue.currency_code IS 'Currency of the revenue.';

CREATE MATERIALIZED VIEW sales.product_sales_monthly AS
SELECT
    i.product_id,
    date_trunc('month', o.ordered_at AT TIME ZONE 'UTC')::date AS sales_month,
    sum(i.quantity)::integer AS pieces_sold,
    round(sum(i.quantity * i.unit_price * (1 - i.discount_percent / 100)), 2) AS net_amount
FROM sales.order_items AS i
JOIN sales.orders AS o USING (order_id)
GROUP BY i.product_id, sales_month
ORDER BY i.product_id, sales_month;
COMMENT ON MATERIALIZED VIEW sales.product_sales_monthly IS 'Pieces and amounts sold by product and month.';
COMMENT ON COLUMN sales.product_sales_monthly.pieces_sold IS 'Number of pieces sold in the month.';

CREATE VIEW logistics.late_shipments AS
SELECT
    s.shipment_id,
    s.order_id,
    s.carrier_code,
    o.promised_on,
    s.delivered_at,
    (s.delivered_at AT TIME ZONE 'UTC')::date - o.promised_on AS days_late
FROM logistics.shipments AS s
JOIN sales.orders AS o USING (order_id)
WHERE (s.delivered_at AT TIME ZONE 'UTC')::date > o.promised_on;
COMMENT ON VIEW logistics.late_shipments IS 'Parcels that reached the customer after the promised day.';
COMMENT ON COLUMN logistics.late_shipments.days_late IS 'Days between the promised day and the delivery.';

INSERT INTO finance.customer_revenue_monthly
SELECT
    i.customer_id,
    date_trunc('month', i.invoiced_on)::date,
    sum(i.net_amount - coalesce(r.net_amount, 0)),
    count(*),
    'EUR'
FROM finance.invoices AS i
LEFT JOIN finance.refunds AS r USING (invoice_id)
GROUP BY 1, 2
ORDER BY 1, 2;

INSERT INTO finance.customer_revenue_margin
SELECT
    i.customer_id,
    date_trunc('month', i.invoiced_on)::date,
    sum(i.net_amount),
    sum(c.cost_of_goods),
    sum(i.net_amount - c.cost_of_goods)
FROM finance.invoices AS i
JOIN (
    SELECT l.order_id, sum(l.quantity * p.unit_cost) AS cost_of_goods
    FROM sales.order_items AS l
    JOIN sales.products AS p USING (product_id)
    GROUP BY l.order_id
) AS c USING (order_id)
GROUP BY 1, 2
ORDER BY 1, 2;

-- The one import from the old system: orders of the first half-year only, cancelled ones among them.
INSERT INTO staging.monthly_customer_revenue
SELECT customer_id, date_trunc('month', ordered_at AT TIME ZONE 'UTC')::date, sum(order_total), count(*), 'EUR'
FROM sales.order_totals
WHERE ordered_at < '2024-07-01 00:00+00'
GROUP BY 1, 2
ORDER BY 1, 2;
