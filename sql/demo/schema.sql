-- Tables, keys and comments of the demo shop. Some comments are missing on purpose: a catalog without gaps would have
-- nothing to show a steward.

CREATE SCHEMA crm;
COMMENT ON SCHEMA crm IS 'Customers, how to reach them, and what they complain about.';
CREATE SCHEMA sales;
COMMENT ON SCHEMA sales IS 'Products and the orders that customers place.';
CREATE SCHEMA logistics;
COMMENT ON SCHEMA logistics IS 'Warehouses, stock and the parcels on their way.';
CREATE SCHEMA finance;
COMMENT ON SCHEMA finance IS 'Invoices, payments, refunds and booked revenue.';
CREATE SCHEMA staging;

-- crm ----------------------------------------------------------------------------------------------------------------

CREATE TABLE crm.customer_segments (
    segment_code text PRIMARY KEY,
    segment_name text NOT NULL,
    discount_percent numeric(4, 1) NOT NULL CHECK (discount_percent BETWEEN 0 AND 100)
);
COMMENT ON TABLE crm.customer_segments IS 'Segments that customers are sorted into, with the discount each is granted.';
COMMENT ON COLUMN crm.customer_segments.segment_code IS 'Short code of the segment.';
COMMENT ON COLUMN crm.customer_segments.segment_name IS 'Name of the segment as shown to staff.';
COMMENT ON COLUMN crm.customer_segments.discount_percent IS 'Discount on list prices in percent.';

CREATE TABLE crm.customers (
    customer_id integer PRIMARY KEY,
    customer_name text NOT NULL,
    segment_code text NOT NULL REFERENCES crm.customer_segments,
    country_code char(2) NOT NULL,
    city text,
    registered_on date NOT NULL,
    is_active boolean NOT NULL DEFAULT true
);
COMMENT ON TABLE crm.customers IS 'Every business that has registered with the shop, active or not.';
COMMENT ON COLUMN crm.customers.customer_id IS 'Number of the customer, never reused.';
COMMENT ON COLUMN crm.customers.customer_name IS 'Trading name of the customer.';
COMMENT ON COLUMN crm.customers.segment_code IS 'Segment the customer belongs to.';
COMMENT ON COLUMN crm.customers.country_code IS 'Country of the registered office, ISO 3166 two letters.';
COMMENT ON COLUMN crm.customers.registered_on IS 'Day of registration.';
COMMENT ON COLUMN crm.customers.is_active IS 'False once the customer has closed the account.';

CREATE TABLE crm.customer_contacts (
    contact_id integer PRIMARY KEY,
    customer_id integer NOT NULL REFERENCES crm.customers,
    contact_role text NOT NULL,
    email text NOT NULL UNIQUE,
    telephone text,
    marketing_consent boolean NOT NULL
);
COMMENT ON TABLE crm.customer_contacts IS 'Personal contact data of the people at a customer.';
COMMENT ON COLUMN crm.customer_contacts.contact_role IS 'What the person does: buyer, accounts or warehouse.';
COMMENT ON COLUMN crm.customer_contacts.email IS 'E-mail address of the person.';
COMMENT ON COLUMN crm.customer_contacts.telephone IS 'Telephone number of the person.';
COMMENT ON COLUMN crm.customer_contacts.marketing_consent IS 'True when the person has agreed to receive advertising.';

CREATE TABLE crm.support_tickets (
    ticket_id integer PRIMARY KEY,
    customer_id integer NOT NULL REFERENCES crm.customers,
    opened_at timestamptz NOT NULL,
    closed_at timestamptz,
    topic text NOT NULL,
    prio smallint NOT NULL,
    satisfaction smallint
);
COMMENT ON TABLE crm.support_tickets IS 'Complaints and questions of customers and how long they took to answer.';
COMMENT ON COLUMN crm.support_tickets.topic IS 'What the ticket is about.';
COMMENT ON COLUMN crm.support_tickets.satisfaction IS 'Grade from 1 (poor) to 5 (very good) given by the customer.';

-- sales --------------------------------------------------------------------------------------------------------------

CREATE TABLE sales.product_categories (
    category_id integer PRIMARY KEY,
    category_name text NOT NULL,
    parent_category_id integer REFERENCES sales.product_categories
);
COMMENT ON TABLE sales.product_categories IS 'Category tree of the assortment.';
COMMENT ON COLUMN sales.product_categories.category_name IS 'Name of the category in the shop window.';
COMMENT ON COLUMN sales.product_categories.parent_category_id IS 'Category above; empty at the top.';

CREATE TABLE sales.products (
    product_id integer PRIMARY KEY,
    sku text NOT NULL UNIQUE,
    product_name text NOT NULL,
    category_id integer NOT NULL REFERENCES sales.product_categories,
    list_price numeric(10, 2) NOT NULL,
    unit_cost numeric(10, 2) NOT NULL,
    discontinued_on date
);
COMMENT ON TABLE sales.products IS 'Articles on offer with their price and cost.';
COMMENT ON COLUMN sales.products.sku IS 'Stock keeping unit printed on the shelf.';
COMMENT ON COLUMN sales.products.list_price IS 'Price of one piece before discounts, in euros without tax.';
COMMENT ON COLUMN sales.products.unit_cost IS 'What one piece costs the shop, in euros.';
COMMENT ON COLUMN sales.products.discontinued_on IS 'Day the article left the assortment; empty while on offer.';

CREATE TABLE sales.orders (
    order_id integer PRIMARY KEY,
    customer_id integer NOT NULL REFERENCES crm.customers,
    ordered_at timestamptz NOT NULL,
    promised_on date NOT NULL,
    order_status text NOT NULL,
    sales_channel text NOT NULL
);
CREATE INDEX ON sales.orders (customer_id);
COMMENT ON TABLE sales.orders IS 'Orders of customers, one row for each order.';
COMMENT ON COLUMN sales.orders.ordered_at IS 'When the order was placed.';
COMMENT ON COLUMN sales.orders.promised_on IS 'Day the delivery was promised for.';
COMMENT ON COLUMN sales.orders.order_status IS 'State of the order: open, shipped, delivered or cancelled.';
COMMENT ON COLUMN sales.orders.sales_channel IS 'How the order came in: web, telephone or field sales.';

CREATE TABLE sales.order_items (
    order_id integer NOT NULL REFERENCES sales.orders,
    line_number smallint NOT NULL,
    product_id integer NOT NULL REFERENCES sales.products,
    quantity integer NOT NULL CHECK (quantity > 0),
    unit_price numeric(10, 2) NOT NULL,
    discount_percent numeric(4, 1) NOT NULL DEFAULT 0,
    PRIMARY KEY (order_id, line_number)
);
COMMENT ON TABLE sales.order_items IS 'Lines of an order: which product, how many, at what price.';
COMMENT ON COLUMN sales.order_items.line_number IS 'Position within the order, from 1.';
COMMENT ON COLUMN sales.order_items.quantity IS 'Number of pieces ordered.';
COMMENT ON COLUMN sales.order_items.unit_price IS 'Price of one piece at the time of the order, in euros without tax.';
COMMENT ON COLUMN sales.order_items.discount_percent IS 'Discount on the line in percent.';

-- logistics ----------------------------------------------------------------------------------------------------------

CREATE TABLE logistics.warehouses (
    warehouse_code text PRIMARY KEY,
    city text NOT NULL,
    country_code char(2) NOT NULL
);
COMMENT ON TABLE logistics.warehouses IS 'Warehouses that goods are kept in and sent from.';
COMMENT ON COLUMN logistics.warehouses.warehouse_code IS 'Three-letter code of the warehouse.';

CREATE TABLE logistics.carriers (
    carrier_code text PRIMARY KEY,
    carrier_name text NOT NULL
);

CREATE TABLE logistics.stock_levels (
    warehouse_code text NOT NULL REFERENCES logistics.warehouses,
    product_id integer NOT NULL REFERENCES sales.products,
    quantity_on_hand integer NOT NULL,
    reorder_level integer NOT NULL,
    counted_on date NOT NULL,
    PRIMARY KEY (warehouse_code, product_id)
);
COMMENT ON TABLE logistics.stock_levels IS 'Pieces of each product on hand in each warehouse at the last count.';
COMMENT ON COLUMN logistics.stock_levels.quantity_on_hand IS 'Pieces found at the last count.';
COMMENT ON COLUMN logistics.stock_levels.reorder_level IS 'New pieces are ordered below this number.';
COMMENT ON COLUMN logistics.stock_levels.counted_on IS 'Day of the last count.';

CREATE TABLE logistics.shipments (
    shipment_id integer PRIMARY KEY,
    order_id integer NOT NULL REFERENCES sales.orders,
    warehouse_code text NOT NULL REFERENCES logistics.warehouses,
    carrier_code text NOT NULL REFERENCES logistics.carriers,
    shipped_at timestamptz NOT NULL,
    delivered_at timestamptz,
    weight_kg numeric(8, 2) NOT NULL
);
COMMENT ON TABLE logistics.shipments IS 'Parcels sent to customers, from which warehouse and with which carrier.';
COMMENT ON COLUMN logistics.shipments.shipped_at IS 'When the parcel left the warehouse.';
COMMENT ON COLUMN logistics.shipments.delivered_at IS 'When the customer received the parcel; empty while on its way.';
COMMENT ON COLUMN logistics.shipments.weight_kg IS 'Weight of the parcel in kilograms.';

CREATE TABLE logistics.tracking_events (
    shipment_id integer NOT NULL REFERENCES logistics.shipments,
    happened_at timestamptz NOT NULL,
    event_type text NOT NULL,
    PRIMARY KEY (shipment_id, happened_at)
) PARTITION BY RANGE (happened_at);
CREATE TABLE logistics.tracking_events_2024_h1 PARTITION OF logistics.tracking_events
    FOR VALUES FROM ('2024-01-01') TO ('2024-07-01');
CREATE TABLE logistics.tracking_events_2024_h2 PARTITION OF logistics.tracking_events
    FOR VALUES FROM ('2024-07-01') TO ('2025-01-01');
CREATE TABLE logistics.tracking_events_2025_h1 PARTITION OF logistics.tracking_events
    FOR VALUES FROM ('2025-01-01') TO ('2025-07-01');
COMMENT ON TABLE logistics.tracking_events IS 'Stations on the way of a parcel as the carrier reports them.';
COMMENT ON COLUMN logistics.tracking_events.event_type IS 'What the carrier reports: collected, or handed over.';

-- finance ------------------------------------------------------------------------------------------------------------

CREATE TABLE finance.exchange_rates (
    currency_code char(3) NOT NULL,
    rate_month date NOT NULL,
    rate_to_eur numeric(12, 6) NOT NULL,
    PRIMARY KEY (currency_code, rate_month)
);
COMMENT ON TABLE finance.exchange_rates IS 'Exchange rates to the euro at the end of each month.';
COMMENT ON COLUMN finance.exchange_rates.currency_code IS 'Currency, ISO 4217 three letters.';
COMMENT ON COLUMN finance.exchange_rates.rate_to_eur IS 'Euros for one unit of the currency.';

CREATE TABLE finance.invoices (
    invoice_id integer PRIMARY KEY,
    order_id integer NOT NULL REFERENCES sales.orders,
    customer_id integer NOT NULL REFERENCES crm.customers,
    invoiced_on date NOT NULL,
    due_on date NOT NULL,
    net_amount numeric(12, 2) NOT NULL,
    tax_amount numeric(12, 2) NOT NULL,
    currency_code char(3) NOT NULL DEFAULT 'EUR'
);
COMMENT ON TABLE finance.invoices IS 'Invoices sent to customers for delivered orders.';
COMMENT ON COLUMN finance.invoices.invoiced_on IS 'Day on the invoice; the accounting period follows from it.';
COMMENT ON COLUMN finance.invoices.due_on IS 'Day the payment is due.';
COMMENT ON COLUMN finance.invoices.net_amount IS 'Amount without tax.';
COMMENT ON COLUMN finance.invoices.tax_amount IS 'Value added tax on top of the net amount.';

CREATE TABLE finance.invoice_payments (
    payment_id integer PRIMARY KEY,
    invoice_id integer NOT NULL REFERENCES finance.invoices,
    paid_on date NOT NULL,
    amount numeric(12, 2) NOT NULL,
    payment_method text NOT NULL
);
COMMENT ON TABLE finance.invoice_payments IS 'Payments received for invoices.';
COMMENT ON COLUMN finance.invoice_payments.amount IS 'Amount received, tax included.';
COMMENT ON COLUMN finance.invoice_payments.payment_method IS 'How it was paid: transfer, card or direct debit.';

CREATE TABLE finance.refunds (
    refund_id integer PRIMARY KEY,
    invoice_id integer NOT NULL REFERENCES finance.invoices,
    refunded_on date NOT NULL,
    net_amount numeric(12, 2) NOT NULL,
    reason text NOT NULL
);
COMMENT ON TABLE finance.refunds IS 'Money given back to customers after an invoice.';
COMMENT ON COLUMN finance.refunds.net_amount IS 'Amount given back, without tax.';
COMMENT ON COLUMN finance.refunds.reason IS 'Why the money was given back.';

CREATE TABLE finance.customer_revenue_monthly (
    customer_id integer NOT NULL REFERENCES crm.customers,
    revenue_month date NOT NULL,
    net_revenue numeric(14, 2) NOT NULL,
    invoice_count integer NOT NULL,
    currency_code char(3) NOT NULL,
    PRIMARY KEY (customer_id, revenue_month)
);
COMMENT ON TABLE finance.customer_revenue_monthly IS
    'Monthly revenue per customer: net amounts invoiced less refunds, one row for each customer and month.';
COMMENT ON COLUMN finance.customer_revenue_monthly.customer_id IS 'Customer the revenue was earned with.';
COMMENT ON COLUMN finance.customer_revenue_monthly.revenue_month IS 'First day of the month of the revenue.';
COMMENT ON COLUMN finance.customer_revenue_monthly.net_revenue IS 'Revenue of the month without tax.';
COMMENT ON COLUMN finance.customer_revenue_monthly.invoice_count IS 'Number of invoices in the month.';
COMMENT ON COLUMN finance.customer_revenue_monthly.currency_code IS 'Currency of the revenue.';

CREATE TABLE finance.customer_revenue_margin (
    customer_id integer NOT NULL REFERENCES crm.customers,
    revenue_month date NOT NULL,
    net_revenue numeric(14, 2) NOT NULL,
    cost_of_goods numeric(14, 2) NOT NULL,
    margin numeric(14, 2) NOT NULL,
    PRIMARY KEY (customer_id, revenue_month)
);
COMMENT ON TABLE finance.customer_revenue_margin IS
    'Monthly revenue and margin per customer: net amounts less the cost of goods, one row for each customer and month.';
COMMENT ON COLUMN finance.customer_revenue_margin.customer_id IS 'Customer the margin was earned with.';
COMMENT ON COLUMN finance.customer_revenue_margin.revenue_month IS 'First day of the month of the revenue.';
COMMENT ON COLUMN finance.customer_revenue_margin.net_revenue IS 'Revenue of the month without tax.';
COMMENT ON COLUMN finance.customer_revenue_margin.cost_of_goods IS 'What the goods sold in the month cost the shop.';
COMMENT ON COLUMN finance.customer_revenue_margin.margin IS 'Revenue less cost of goods.';

-- staging ------------------------------------------------------------------------------------------------------------

CREATE TABLE staging.cust_ord_hdr (
    ord_no integer,
    cust_no integer,
    ord_dt date,
    stat_cd char(1),
    ord_tot numeric
);
CREATE TABLE staging.cust_ord_ln_tmp (
    ord_no integer,
    ln_no integer,
    art_cd text,
    qty numeric,
    prc numeric
);

CREATE TABLE staging.monthly_customer_revenue (
    customer_id integer NOT NULL,
    revenue_month date NOT NULL,
    net_revenue numeric(14, 2) NOT NULL,
    order_count integer NOT NULL,
    currency_code char(3) NOT NULL
);
COMMENT ON TABLE staging.monthly_customer_revenue IS
    'Monthly revenue per customer: net amounts imported less discounts, one row for each customer and month.';
COMMENT ON COLUMN staging.monthly_customer_revenue.customer_id IS 'Customer the revenue was imported for.';
COMMENT ON COLUMN staging.monthly_customer_revenue.revenue_month IS 'First day of the month of the revenue.';
COMMENT ON COLUMN staging.monthly_customer_revenue.net_revenue IS 'Revenue of the month without tax.';
COMMENT ON COLUMN staging.monthly_customer_revenue.order_count IS 'Number of orders in the month.';
COMMENT ON COLUMN staging.monthly_customer_revenue.currency_code IS 'Currency of the revenue.';
