import { describe, expect, it } from "vitest";
import type { SimulatedRequest } from "../replay/simulated-request.ts";
import { parseFieldMap } from "./field-map.ts";
import { createLineParser, detectFormat, type LogFormat } from "./log-formats.ts";

interface Golden {
  readonly what: string;
  readonly format: LogFormat;
  readonly line: string;
  readonly map?: readonly string[];
  readonly time: string;
  readonly wholeSecond?: true;
  readonly dimensions: Readonly<Record<string, string>>;
  readonly denied?: boolean;
  readonly cost?: number;
}

const alb =
  'https 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/orders?limit=5 HTTP/1.1" "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:us-east-2:123456789012:certificate/12345678-1234-1234-1234-123456789012" 1 2018-07-02T22:22:48.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-" TID_1234abcd5678ef90';
const caddy =
  '{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"172.71.190.23","remote_port":"41342","client_ip":"203.0.113.7","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/orders?page=2","headers":{"User-Agent":["curl/7.82.0"],"X-Tenant":["acme"]},"tls":{"resumed":false}},"bytes_read":0,"user_id":"","duration":0.000929675,"size":10900,"status":429,"resp_headers":{"Server":["Caddy"]}}';
const cloudflare =
  '{"ClientIP":"203.0.113.7","ClientRequestHost":"www.example.com","ClientRequestMethod":"GET","ClientRequestURI":"/orders?page=2","EdgeEndTimestamp":1506702504461999900,"EdgeResponseBytes":69045,"EdgeResponseStatus":200,"EdgeStartTimestamp":1506702504433000200,"RayID":"3a6050bcbe121a87","RequestHeaders":{"x-tenant":"acme"}}';
const traefik =
  '{"ClientAddr":"203.0.113.7:50168","ClientHost":"203.0.113.7","ClientPort":"50168","ClientUsername":"-","DownstreamContentSize":12,"DownstreamStatus":429,"Duration":1234567,"OriginStatus":0,"RequestAddr":"www.example.com","RequestContentSize":0,"RequestCount":5,"RequestHost":"www.example.com","RequestMethod":"GET","RequestPath":"/orders?page=2","RequestProtocol":"HTTP/1.1","StartLocal":"2026-01-31T13:00:00.123456789+01:00","StartUTC":"2026-01-31T12:00:00.123456789Z","entryPointName":"web","level":"info","msg":"","request_X-Tenant":"acme","time":"2026-01-31T12:00:00Z"}';
const envoyJson =
  '{"start_time":"2026-01-31T12:00:00.310Z","method":"POST","path":"/orders?page=2","protocol":"HTTP/2","response_code":204,"response_flags":"-","bytes_received":154,"bytes_sent":0,"duration":226,"x_forwarded_for":"198.51.100.9, 203.0.113.7","user_agent":"app/1","authority":"orders","upstream_host":"10.0.2.1:80","x_tenant":"acme"}';
const usual = { ip: "203.0.113.7", endpoint: "/orders", method: "GET" };

const goldens: readonly Golden[] = [
  {
    what: "a common log",
    format: "combined",
    line: '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326',
    time: "2000-10-10T20:55:36.000Z",
    wholeSecond: true,
    dimensions: { ip: "127.0.0.1", endpoint: "/apache_pb.gif", method: "GET" },
  },
  {
    what: "a combined log with a query, and quotes that are escaped",
    format: "combined",
    line: '203.0.113.7 - - [31/Jan/2026:12:00:00 +0000] "GET /orders?q=a\\"b HTTP/1.1" 429 17 "https://example.com/" "an \\"agent\\""',
    time: "2026-01-31T12:00:00.000Z",
    wholeSecond: true,
    dimensions: usual,
    denied: true,
  },
  {
    what: "a combined log of IPv6, a user's name with a space, HTTP/2 and an absolute target",
    format: "combined",
    line: '2001:db8::1 - Ada L [31/Jan/2026:23:59:59 +0530] "PUT http://example.com/a/b#c HTTP/2.0" 200 17 "-" "-"',
    time: "2026-01-31T18:29:59.000Z",
    wholeSecond: true,
    dimensions: { ip: "2001:db8::1", endpoint: "/a/b", method: "PUT" },
  },
  {
    what: "a combined log with fields of its own",
    format: "combined",
    line: '10.0.0.1 - - [31/Jan/2026:12:00:00 +0000] "GET /orders?key=k1 HTTP/1.1" 200 17 "-" "app/1" "203.0.113.7" acme 25 1769860800.123',
    map: [
      "ip=field:10",
      "tenant=field:11",
      "cost=field:12",
      "time=field:13",
      "agent=header:User-Agent",
      "api_key=query:key",
    ],
    time: "2026-01-31T12:00:00.123Z",
    dimensions: { ...usual, tenant: "acme", agent: "app/1", api_key: "k1" },
    cost: 25,
  },
  {
    what: "Traefik's text, which is combined and more",
    format: "combined",
    line: '203.0.113.7 - - [31/Jan/2026:12:00:00 +0000] "GET /orders HTTP/1.1" 200 17 "-" "app/1" 5 "orders@docker" "http://172.17.0.2:80" 4ms',
    time: "2026-01-31T12:00:00.000Z",
    wholeSecond: true,
    dimensions: usual,
  },
  {
    what: "Envoy's text",
    format: "envoy",
    line: '[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "198.51.100.9,10.0.35.28" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80"',
    map: ["host=header:host"],
    time: "2016-04-15T20:17:00.310Z",
    dimensions: { ip: "10.0.35.28", endpoint: "/api/v1/locations", method: "POST", host: "locations" },
  },
  {
    what: "Envoy's JSON",
    format: "envoy-json",
    line: envoyJson,
    map: ["tenant=header:x-tenant"],
    time: "2026-01-31T12:00:00.310Z",
    dimensions: { ...usual, method: "POST", tenant: "acme" },
  },
  {
    what: "an application load balancer's log, by the time at which the request came",
    format: "alb",
    line: alb,
    map: ["host=header:host"],
    time: "2018-07-02T22:22:48.364Z",
    dimensions: { ip: "192.168.131.39", endpoint: "/orders", method: "GET", host: "www.example.com" },
  },
  {
    what: "Caddy's JSON",
    format: "caddy",
    line: caddy,
    map: ["tenant=header:x-tenant", "page=query:page"],
    time: "2022-03-09T21:30:01.524Z",
    dimensions: { ...usual, tenant: "acme", page: "2" },
    denied: true,
  },
  {
    what: "Cloudflare's Logpush, with nanoseconds",
    format: "cloudflare",
    line: cloudflare,
    map: ["tenant=header:X-Tenant"],
    time: "2017-09-29T16:28:24.433Z",
    dimensions: { ...usual, tenant: "acme" },
  },
  {
    what: "Traefik's JSON",
    format: "traefik",
    line: traefik,
    map: ["tenant=header:x-tenant"],
    time: "2026-01-31T12:00:00.123Z",
    dimensions: { ...usual, tenant: "acme" },
    denied: true,
  },
  {
    what: "JSON of one's own",
    format: "json",
    line: '{"when":1769860800,"who":{"user":"ada","roles":["admin"]},"what":"/orders?a=1","tokens":12.5,"code":200}',
    map: [
      "time=json:$.when",
      "user=json:$.who.user",
      "role=json:who.roles[0]",
      "endpoint=json:$['what']",
      "cost=json:$.tokens",
      "status=json:$.code",
    ],
    time: "2026-01-31T12:00:00.000Z",
    wholeSecond: true,
    dimensions: { endpoint: "/orders", user: "ada", role: "admin" },
    cost: 13,
  },
  {
    what: "nginx's JSON under usual names",
    format: "json",
    line: '{"time_iso8601":"2026-01-31T13:00:00+01:00","remote_addr":"203.0.113.7","request_method":"GET","request_uri":"/orders?a=1","status":"429"}',
    time: "2026-01-31T12:00:00.000Z",
    wholeSecond: true,
    dimensions: usual,
    denied: true,
  },
];

const deniedStatuses = new Set([429]);

describe("a line of", () => {
  it.each(goldens)(
    "$what",
    ({ format, line, map = [], time, wholeSecond = false, dimensions, denied = false, cost }) => {
      const parser = createLineParser(format, { map: parseFieldMap(map), deniedStatuses });
      const bytes = Buffer.from(`before ${line} after`);
      const request = parser.parse(bytes, 7, bytes.length - 6) as SimulatedRequest | undefined;
      expect(request && new Date(Math.floor(request.timeMs)).toISOString()).toBe(time);
      expect(request).toMatchObject({ wholeSecond, dimensions, wasDenied: denied });
      expect(request?.dimensions).toEqual(dimensions);
      expect(request?.cost).toBe(cost);
    },
  );

  it.each(goldens.filter(({ map }) => !map?.some((entry) => entry.startsWith("time="))))(
    "$what is recognized",
    ({ format, line }) => {
      expect(detectFormat(line)).toBe(format);
    },
  );

  it.each(goldens.filter(({ format, map }) => format === "combined" && map === undefined))(
    "$what is read alike byte by byte and field by field",
    ({ line }) => {
      const bytes = Buffer.from(line);
      const [quick, slow] = [[], ["none=field:99"]].map((map) =>
        createLineParser("combined", { map: parseFieldMap(map), deniedStatuses }).parse(bytes, 0, bytes.length),
      );
      expect(quick).toEqual(slow);
    },
  );
});

describe("a line without a request", () => {
  it.each([
    ["combined", ""],
    ["combined", "hello"],
    ["combined", '203.0.113.7 - - [31/Foo/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 17'],
    ["combined", '203.0.113.7 - - [31/Jan/2026:25:00:00 +0000] "GET / HTTP/1.1" 200 17'],
    ["combined", '203.0.113.7 - - [31/Jan/2026:12:00:00 +0000] "-" 408 0 "-" "-"'],
    ["combined", '203.0.113.7 - - [31/Jan/2026:12:00:00 +0000] "\\x16\\x03\\x01" 400 0 "-" "-"'],
    ["combined", '203.0.113.7 - - [31/Jan/2026:12:00:00 +0000] "GET /'],
    ["envoy", '[yesterday] "GET / HTTP/1.1" 200 - 1 1 1 1 "203.0.113.7" "-" "-" "-" "-"'],
    ["alb", "http 2018-07-02T22:23:00.186641Z app/x 1.2.3.4:5"],
    ["json", "{"],
    ["json", "[]"],
    ["json", '{"time":"soon"}'],
  ] as const)("in %s is refused: %s", (format, line) => {
    const bytes = Buffer.from(line);
    expect(createLineParser(format, { map: new Map(), deniedStatuses }).parse(bytes, 0, bytes.length)).toBeUndefined();
  });
});

describe("a map", () => {
  it.each([
    [["tenant"], '"tenant" should be name=header:NAME'],
    [["tenant=cookie:a"], '"tenant=cookie:a" should be'],
    [["tenant=field:0"], "a field is a number from 1"],
    [["tenant=json:$"], "is not a path"],
    [["a=field:1", "a=field:2"], "a is mapped twice"],
  ])("%j is refused", (entries, message) => {
    expect(() => parseFieldMap(entries)).toThrow(message);
  });

  it("is refused where the format cannot have it", () => {
    const create = (format: LogFormat, entry: string) => () =>
      createLineParser(format, { map: parseFieldMap([entry]), deniedStatuses });
    expect(create("combined", "tenant=header:x-tenant")).toThrow(
      "combined logs have the headers referer, user-agent, not x-tenant; if yours has it, use tenant=field:NUMBER",
    );
    expect(create("alb", "user=json:$.user")).toThrow("alb logs are text; use user=field:NUMBER");
    expect(create("caddy", "user=field:3")).toThrow("caddy logs are JSON; use user=json:$.PATH");
  });
});
