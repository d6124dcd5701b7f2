/** The policies of a shop with an API, as several teams would write them. */
export const worldPolicies = `
policies:
  - id: login
    description: Slows down guessing of passwords
    owner: identity
    match: { endpoint: /login, method: POST }
    limits:
      - { by: [ip], windows: [5/m, 50/h], block_for: 15m }
    on_failure: closed

  - id: api
    description: What a tenant may send to the API, by plan
    owner: platform
    match: { endpoint: /v1/** }
    limits:
      - name: per-tenant
        by: [tenant]
        windows: [50/s burst 100, 2000/m]
        tiers:
          free: { windows: [5/s burst 20, 200/m] }
          pro: { windows: [50/s burst 200, 2000/m] }
          enterprise: { windows: [500/s burst 1000, 20000/m] }
        blockable: true
    on_failure: open

  - id: search
    description: Search costs more than everything else
    owner: search
    match: { endpoint: /v1/search, method: GET }
    limits:
      - name: per-tenant
        by: [tenant]
        algorithm: sliding_window
        windows: [60/m]
        blockable: true
    on_failure: local

  - id: search.next
    description: The limit that we would like to have for search
    owner: search
    match: { endpoint: /v1/search }
    mode: shadow
    limits:
      - { by: [user], algorithm: sliding_window, windows: [400/m] }
    on_failure: open

  - id: export
    description: Exports are paid for by the day
    owner: billing
    match: { endpoint: /v1/exports, method: POST }
    limits:
      - name: daily
        by: [tenant]
        windows: [200/day in Europe/Berlin]
    cost: 5
    on_failure: open

  - id: webhooks
    description: Deliveries to one customer
    owner: platform
    match: { endpoint: "/hooks/{hook}" }
    limits:
      - { by: [tenant, hook], windows: [20/s burst 40] }
    on_failure: open

  - id: checkout
    description: One customer, a few orders
    owner: shop
    match: { endpoint: /v1/checkout, method: POST }
    limits:
      - { by: [user], windows: [10/m] }
    on_failure: open

  - id: sms
    description: Codes by text message cost money
    owner: identity
    match: { endpoint: /v1/sms, method: POST }
    limits:
      - { name: per-number, by: [phone], algorithm: sliding_log, windows: [3/10m, 10/d], missing: deny }
      - { name: all-together, windows: [50/s] }
    on_failure: closed

  - id: partners
    description: Partners are not limited
    owner: platform
    match: { endpoint: /partners/** }
    unlimited: true
`;

/** Who calls the API, and on which tier. */
export const worldTenants: readonly { readonly name: string; readonly tier?: string }[] = [
  { name: "acme", tier: "free" },
  { name: "globex", tier: "pro" },
  { name: "initech", tier: "enterprise" },
  { name: "umbrella", tier: "pro" },
  { name: "hooli", tier: "enterprise" },
  { name: "stark", tier: "pro" },
  { name: "wayne" },
  { name: "wonka", tier: "free" },
];
