/** The routes that are limited, each as policies write it. `public` is open to all clients. */
export const limitedRoutes = {
  login: "/v1/login",
  orders: "/v1/orders/**",
  item: "/v1/items/{item}",
  tenant: "/t/{tenant}/login",
  cafe: "/café",
} as const;

export type LimitedRoute = keyof typeof limitedRoutes;

/** Spellings that evaded a limit once, or were found to be read differently, by name. */
const named = [
  "//public/v1/login",
  "///public/v1/login",
  "/\\public/v1/login",
  "\\\\public/v1/login",
  "//public\\v1/login",
  "//public:80/../v1/login",
  "/v1//../login",
  "/v1//..//../v1/login",
  "/v1/orders/../../public/x",
  "/v1/orders/%2e%2e/%2e%2e/public/x",
  "/v1/orders/%2E./.%2e/public/x",
  "/v1/orders/%2e%2e/..",
  "/public/%2e%2e/../v1/login",
  "/public/x/%2e%2e/%2e%2e/../v1/login",
  "/v1/items/",
  "/v1/items/..",
  "/v1/items/%2e%2e",
  "/v1/items/%00",
  "/v1/items/.%00.",
  "/v1/items/%0d%0a",
  "/v1/items/%",
  "/v1/items/%c0%ae",
  "/v1/items/%c0%ae%c0%ae/x",
  "/v1/items/%252e%252e",
  "/v1/items/;",
  "/v1/items/..;",
  "/v1/items/a%2fb",
  "/v1/items/a%5cb",
  "/v1/items/a\\b",
  "/v1/items/a;b",
  "/t//login",
  "/t/../login",
  "/t/%2f/login",
  "/t/;/login",
  "/t/%00/login",
  "/public/../t/.%00./login",
  "/t/a/b/../login",
  "/public#/../v1/login",
  "/v1/login#/../../public",
  "/public?/../v1/login",
  "/v1/login%3f/../../public",
  "/v1/login%23/../../public",
  "/public;/../v1/login",
  "/v1/login;/../../public",
  "/v1/login;x/y",
  "/v1/login.",
  "/v1/login%20",
  "/v1/login%09",
  "/v1/login/.",
  "/v1/login/./",
  "/V1/LOGIN",
  "/v1/log%69n",
  "/v1/%256cogin",
  "http://h/v1/login",
  "http://h//public/v1/login",
  "http:///v1/login",
  "http:///public/v1/login",
  "http:/v1/login",
  "http:/public/v1/login",
  "HTTP://h/V1/login",
  "http://h%2fpublic/v1/login",
  "http://u@h/v1/login",
  "x://h/v1/login",
  "x:/v1/login",
  "*",
  "v1/login",
  "h:443",
  "/caf\u00c3\u00a9",
  "/caf\u00c3\u0089",
  "/caf%C3%A9",
  "/caf%c3\u00a9",
  "/caf\u00c3%a9",
  "/caf\u00e9",
  "/caf%E9",
  "/CAF%C3%89/",
  "//caf\u00c3\u00a9/v1/login",
  "/public/../caf\u00c3\u00a9",
];

const cores = ["/v1/login", "/v1/orders/7", "/v1/items/7", "/t/acme/login", "/caf%C3%A9"];

const befores = [
  "//public",
  "///public",
  "/\\public",
  "//",
  "/.",
  "/./",
  "/public/..",
  "/public//..",
  "/public/x/../..",
  "/public/%2e%2e",
  "/public/.%2E",
  "/public%2f..",
  "/public\\..",
  "/public%5c..",
  "/public;/..",
  "/public/..;",
  "/public/%2e%2e/x/..",
  "/;",
  "/%2f",
  "/..",
  "http://h",
  "http:///public",
];

const separators = [
  "//",
  "/./",
  "/%2e/",
  "\\",
  "%2f",
  "%5C",
  "/x/../",
  "/x/%2e%2e/",
  "/x//../",
  "//../",
  "//x/../",
  ";a/",
  "/;/",
  "/x/..;/",
  "/x%2f..%2f",
  "/x\\..\\",
];

const afters = [
  "/",
  "//",
  "/.",
  "/..",
  "/x/..",
  "/../../public/x",
  "/../../../public",
  "//../../public/x",
  "/%2e%2e/%2e%2e/public/x",
  "/%2e%2e/../../public",
  "%2f..%2f..%2fpublic",
  "\\..\\..\\public",
  ";a",
  ";/../../public",
  "/;a",
  "%3ba",
  "%00",
  "#x",
  "#/../../public",
  "?x=/../public",
  "%2f",
  "%5c",
];

/**
 * Every way to write each of a few paths that a single trick gives, and a third of all pairs of tricks, on one of them in turn:
 * the same list on every run. Each character is a byte, as in the request line.
 */
export function listSpellings(): readonly string[] {
  const spellings = new Set(named);
  for (const core of cores) {
    spellings.add(core);
    for (const before of befores) spellings.add(before + core);
    for (const separator of separators) spellings.add(separateLast(core, separator));
    for (const after of afters) spellings.add(core + after);
  }
  let turn = 0;
  const next = (): string => cores[turn++ % cores.length]!;
  for (const [before, after] of pairs(befores, afters)) spellings.add(before + next() + after);
  for (const [before, separator] of pairs(befores, separators)) spellings.add(before + separateLast(next(), separator));
  for (const [separator, after] of pairs(separators, afters)) spellings.add(separateLast(next(), separator) + after);
  return [...spellings];
}

function pairs(some: readonly string[], others: readonly string[]): readonly (readonly [string, string])[] {
  return some.flatMap((one, i) => others.flatMap((other, j) => ((i + j) % 3 === 0 ? [[one, other] as const] : [])));
}

/** The last slash but a leading one is what routers look at; a path with a single one gets it there. */
function separateLast(path: string, separator: string): string {
  const at = path.lastIndexOf("/");
  return path.slice(0, at) + (at === 0 ? separator.replace(/^\\/, "/") : separator) + path.slice(at + 1);
}
