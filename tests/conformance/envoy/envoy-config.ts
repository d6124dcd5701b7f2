/** `127.0.0.1:34567` */
type Address = string;

export interface EnvoyAddresses {
  readonly app: Address;
  /** Several servers of the same limits. */
  readonly sluices: readonly Address[];
}

/** How long Envoy waits for Sluice; long, because a busy machine is part of this. */
const timeout = "10s";

/**
 * Two listeners that limit alike: `lenient` passes requests while Sluice does not answer, `strict` answers 503. Ports are
 * chosen by the system. What a route sends is as in docs/envoy.md.
 */
export function renderEnvoyConfig({ app, sluices }: EnvoyAddresses): string {
  const config = {
    admin: { address: socketAddress("127.0.0.1:0") },
    static_resources: {
      listeners: [listener("lenient", false), listener("strict", true)],
      clusters: [
        { name: "app", type: "STATIC", load_assignment: assignment("app", [app]) },
        {
          name: "sluice",
          type: "STATIC",
          connect_timeout: "1s",
          typed_extension_protocol_options: {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
              "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
          // Without this, Envoy asks unhealthy servers too if more than half of them are.
          common_lb_config: { healthy_panic_threshold: { value: 0 } },
          load_assignment: assignment("sluice", sluices),
          health_checks: [
            {
              timeout: "5s",
              interval: "0.2s",
              no_traffic_interval: "0.2s",
              unhealthy_threshold: 1,
              healthy_threshold: 1,
              grpc_health_check: { service_name: "ratelimit" },
            },
          ],
        },
      ],
    },
  };
  return JSON.stringify(config, undefined, 2);
}

function listener(name: string, failureModeDeny: boolean): object {
  const limits = {
    name: "envoy.filters.http.ratelimit",
    typed_config: {
      "@type": "type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit",
      domain: "shop",
      timeout,
      failure_mode_deny: failureModeDeny,
      status_on_error: { code: "ServiceUnavailable" },
      enable_x_ratelimit_headers: "DRAFT_VERSION_03",
      rate_limit_service: {
        transport_api_version: "V3",
        grpc_service: { envoy_grpc: { cluster_name: "sluice" } },
      },
    },
  };
  const router = {
    name: "envoy.filters.http.router",
    typed_config: { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
  };
  const manager = {
    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    stat_prefix: name,
    http_filters: [limits, router],
    route_config: { virtual_hosts: [{ name: "all", domains: ["*"], routes: [route] }] },
  };
  return {
    name,
    address: socketAddress("127.0.0.1:0"),
    filter_chains: [{ filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }] }],
  };
}

const route = {
  match: { prefix: "/" },
  route: {
    cluster: "app",
    rate_limits: [
      { actions: [{ request_headers: { header_name: "x-tenant", descriptor_key: "tenant" } }] },
      {
        actions: [
          { request_headers: { header_name: "x-tenant", descriptor_key: "reader" } },
          { request_headers: { header_name: ":path", descriptor_key: "path" } },
        ],
      },
      { actions: [{ request_headers: { header_name: "x-crowd", descriptor_key: "crowd" } }] },
    ],
  },
};

function assignment(name: string, addresses: readonly Address[]): object {
  const endpoints = addresses.map((address) => ({ endpoint: { address: socketAddress(address) } }));
  return { cluster_name: name, endpoints: [{ lb_endpoints: endpoints }] };
}

function socketAddress(address: Address): object {
  const [host, port] = address.split(":");
  return { socket_address: { address: host, port_value: Number(port) } };
}
