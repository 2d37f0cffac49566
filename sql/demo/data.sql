-- Rows from series and arithmetic. `pg_temp.spread` stands in for chance: the same seed gives the same number, anywhere.

CREATE FUNCTION pg_temp.spread(seed text, below integer) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$ SELECT ('x' || left(md5(seed), 7))::bit(28)::integer % below $$;

INSERT INTO crm.customer_segments VALUES
    ('WHL', 'Wholesale', 12.5), ('RET', 'Retail', 5.0), ('HOS', 'Hospitality', 7.5), ('PUB', 'Public sector', 4.0),
    ('NEW', 'New business', 0.0);

INSERT INTO crm.customers
SELECT
    n,
    (ARRAY['Amber', 'Birch', 'Cedar', 'Delta', 'Ember', 'Fjord', 'Grove', 'Harbour', 'Iris', 'Juniper',
           'Kestrel', 'Larch', 'Meadow', 'North', 'Orchard', 'Pebble', 'Quay', 'River', 'Stone', 'Tidal'])[1 + n % 20]
    || ' ' ||
    (ARRAY['Bakery', 'Books', 'Canteen', 'Catering', 'Clinic', 'Deli', 'Florist', 'Garage', 'Guesthouse', 'Hotel',
           'Kiosk', 'Library', 'Market', 'Museum', 'Pharmacy', 'Roastery', 'School', 'Stores', 'Studio', 'Theatre']
    )[1 + (n / 20) % 20],
    (ARRAY['WHL', 'RET', 'RET', 'HOS', 'HOS', 'PUB', 'NEW'])[1 + pg_temp.spread('segment' || n, 7)],
    (ARRAY['DE', 'DE', 'DE', 'AT', 'CH', 'FR', 'NL', 'DK'])[1 + pg_temp.spread('country' || n, 8)],
    CASE WHEN n % 9 = 0 THEN NULL ELSE (ARRAY['Eastport', 'Westhaven', 'Milltown', 'Highbridge', 'Lakeside']
    )[1 + pg_temp.spread('city' || n, 5)] END,
    DATE '2021-01-04' + pg_temp.spread('registered' || n, 1090),
    n % 17 <> 0
FROM generate_series(1, 400) AS n;

INSERT INTO crm.customer_contacts
SELECT
    n,
    1 + (n - 1) % 400,
    (ARRAY['buyer', 'buyer', 'accounts', 'warehouse'])[1 + pg_temp.spread('role' || n, 4)],
    'contact' || n || '@customer' || (1 + (n - 1) % 400) || '.example',
    CASE WHEN n % 5 = 0 THEN NULL ELSE '+00 555 ' || lpad(n::text, 6, '0') END,
    n % 3 = 0
FROM generate_series(1, 600) AS n;

INSERT INTO crm.support_tickets
SELECT
    n,
    1 + pg_temp.spread('ticket customer' || n, 400),
    TIMESTAMPTZ '2024-01-08 08:00+00' + make_interval(hours => 17 * n),
    CASE WHEN n % 11 = 0 THEN NULL
         ELSE TIMESTAMPTZ '2024-01-08 08:00+00' + make_interval(hours => 17 * n + 1 + pg_temp.spread('closed' || n, 90))
    END,
    (ARRAY['late delivery', 'damaged goods', 'wrong invoice', 'product question', 'return'])[1 + n * n % 5],
    1 + pg_temp.spread('prio' || n, 3),
    CASE WHEN n % 3 = 0 THEN 1 + pg_temp.spread('grade' || n, 5) END
FROM generate_series(1, 500) AS n;

INSERT INTO sales.product_categories VALUES
    (1, 'Food', NULL), (2, 'Drinks', NULL), (3, 'Household', NULL), (4, 'Bread', 1), (5, 'Cheese', 1), (6, 'Spices', 1),
    (7, 'Coffee', 2), (8, 'Tea', 2), (9, 'Juice', 2), (10, 'Cleaning', 3), (11, 'Paper', 3), (12, 'Kitchen', 3);

INSERT INTO sales.products
SELECT
    n,
    'SKU-' || lpad((n * 37)::text, 5, '0'),
    (ARRAY['Plain', 'Fine', 'Large', 'Small', 'Organic', 'Classic'])[1 + n % 6] || ' '
    || lower(c.category_name) || ' no. ' || n,
    c.category_id,
    price.amount,
    round(price.amount * (50 + pg_temp.spread('cost' || n, 30)) / 100, 2),
    CASE WHEN n % 13 = 0 THEN DATE '2024-06-30' + n END
FROM generate_series(1, 120) AS n
JOIN sales.product_categories AS c ON c.category_id = 4 + n % 9
CROSS JOIN LATERAL (SELECT (250 + pg_temp.spread('price' || n, 4000)) / 100.0 AS amount) AS price
ORDER BY n;

INSERT INTO sales.orders
SELECT
    n,
    1 + pg_temp.spread('order customer' || n, 400),
    moment.ordered_at,
    moment.ordered_at::date + 3 + pg_temp.spread('promise' || n, 5),
    CASE WHEN n % 29 = 0 THEN 'cancelled' WHEN n > 2350 THEN 'open' WHEN n > 2280 THEN 'shipped' ELSE 'delivered' END,
    (ARRAY['web', 'web', 'web', 'telephone', 'field sales'])[1 + pg_temp.spread('channel' || n, 5)]
FROM generate_series(1, 2400) AS n
CROSS JOIN LATERAL (SELECT TIMESTAMPTZ '2024-01-02 06:00+00' + make_interval(mins => 218 * n) AS ordered_at) AS moment;

-- Two or three lines for each order, 6,000 in all.
INSERT INTO sales.order_items
SELECT
    o.order_id,
    line,
    product.product_id,
    1 + pg_temp.spread('quantity' || o.order_id || ' ' || line, 24),
    product.list_price,
    s.discount_percent
FROM sales.orders AS o
JOIN crm.customers AS c USING (customer_id)
JOIN crm.customer_segments AS s USING (segment_code)
CROSS JOIN LATERAL generate_series(1, 2 + o.order_id % 2) AS line
JOIN sales.products AS product
    ON product.product_id = 1 + pg_temp.spread('product' || o.order_id || ' ' || line, 120)
ORDER BY o.order_id, line;

INSERT INTO logistics.warehouses VALUES
    ('EPT', 'Eastport', 'DE'), ('WHV', 'Westhaven', 'DE'), ('MIL', 'Milltown', 'NL'), ('LAK', 'Lakeside', 'AT');

INSERT INTO logistics.carriers VALUES
    ('SWL', 'Swallow Parcels'), ('HRN', 'Heron Freight'), ('OWL', 'Owl Overnight'), ('GOO', 'Goose Cargo'),
    ('OWN', 'Own van');

INSERT INTO logistics.stock_levels
SELECT
    w.warehouse_code,
    p.product_id,
    pg_temp.spread('stock' || w.warehouse_code || p.product_id, 400),
    20 + p.product_id % 5 * 10,
    DATE '2024-12-31'
FROM logistics.warehouses AS w
CROSS JOIN sales.products AS p
ORDER BY 1, 2;

INSERT INTO logistics.shipments
SELECT
    row_number() OVER (ORDER BY o.order_id),
    o.order_id,
    (ARRAY['EPT', 'EPT', 'WHV', 'MIL', 'LAK'])[1 + pg_temp.spread('warehouse' || o.order_id, 5)],
    (ARRAY['SWL', 'SWL', 'HRN', 'OWL', 'GOO', 'OWN'])[1 + pg_temp.spread('carrier' || o.order_id, 6)],
    o.ordered_at + make_interval(hours => 20 + pg_temp.spread('shipped' || o.order_id, 40)),
    CASE WHEN o.order_status = 'delivered'
         THEN o.ordered_at + make_interval(hours => 70 + pg_temp.spread('delivered' || o.order_id, 110)) END,
    (50 + pg_temp.spread('weight' || o.order_id, 3000)) / 100.0
FROM sales.orders AS o
WHERE o.order_status IN ('shipped', 'delivered')
ORDER BY o.order_id
LIMIT 2200;

INSERT INTO logistics.tracking_events
SELECT
    s.shipment_id,
    s.shipped_at + make_interval(hours => 5 * step),
    (ARRAY['collected', 'handed over'])[1 + step]
FROM logistics.shipments AS s
CROSS JOIN generate_series(0, 1) AS step
ORDER BY 1, 2;

INSERT INTO finance.exchange_rates
SELECT
    currency.code,
    (DATE '2024-01-01' + make_interval(months => month))::date,
    round(currency.base * (1 + (pg_temp.spread(currency.code || month, 60) - 30) / 1000.0), 6)
FROM (VALUES ('CHF', 1.05), ('DKK', 0.134), ('EUR', 1.0)) AS currency (code, base)
CROSS JOIN generate_series(0, 17) AS month
ORDER BY 1, 2;
UPDATE finance.exchange_rates SET rate_to_eur = 1 WHERE currency_code = 'EUR';

INSERT INTO finance.invoices
SELECT
    row_number() OVER (ORDER BY o.order_id),
    o.order_id,
    o.customer_id,
    invoice.day,
    invoice.day + 30,
    invoice.net_amount,
    round(invoice.net_amount * 0.19, 2)
FROM sales.orders AS o
CROSS JOIN LATERAL (
    SELECT
        (o.ordered_at AT TIME ZONE 'UTC')::date + 2 AS day,
        round(sum(i.quantity * i.unit_price * (1 - i.discount_percent / 100)), 2) AS net_amount
    FROM sales.order_items AS i
    WHERE i.order_id = o.order_id
) AS invoice
WHERE o.order_status <> 'cancelled'
ORDER BY o.order_id
LIMIT 2300;

INSERT INTO finance.invoice_payments
SELECT
    row_number() OVER (ORDER BY invoice_id),
    invoice_id,
    due_on - 20 + pg_temp.spread('paid' || invoice_id, 35),
    net_amount + tax_amount,
    (ARRAY['transfer', 'transfer', 'card', 'direct debit'])[1 + pg_temp.spread('method' || invoice_id, 4)]
FROM finance.invoices
WHERE invoice_id % 11 <> 0
ORDER BY invoice_id
LIMIT 2100;

INSERT INTO finance.refunds
SELECT
    n,
    n * 15,
    i.invoiced_on + 12,
    round(i.net_amount * (10 + pg_temp.spread('refund' || n, 60)) / 100, 2),
    (ARRAY['damaged', 'late', 'wrong article', 'goodwill'])[1 + n % 4]
FROM generate_series(1, 150) AS n
JOIN finance.invoices AS i ON i.invoice_id = n * 15
ORDER BY n;

INSERT INTO staging.cust_ord_hdr
SELECT n, 1 + n % 400, DATE '2023-06-01' + n / 2, (ARRAY['A', 'B', 'X'])[1 + n % 3], (n * 331 % 9000) / 10.0
FROM generate_series(1, 300) AS n;

INSERT INTO staging.cust_ord_ln_tmp
SELECT 1 + (n - 1) / 3, 1 + (n - 1) % 3, 'A' || n % 120, 1 + n % 9, (n * 173 % 4000) / 100.0
FROM generate_series(1, 900) AS n;
