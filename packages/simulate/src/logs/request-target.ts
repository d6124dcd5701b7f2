/** The path of a request target: `/a` of `/a?b=c`, of `http://example.com:80/a` and of `/a#b`. */
export function findPath(target: string): string {
  const path = withoutOrigin(target);
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}

/** The value of a query parameter; undefined if the target has none. */
export function findQuery(target: string, name: string): string | undefined {
  const [, query] = /\?([^#]*)/.exec(target) ?? [];
  return query === undefined ? undefined : (new URLSearchParams(query).get(name) ?? undefined);
}

function withoutOrigin(target: string): string {
  if (target.startsWith("/")) return target;
  const [origin] = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(target) ?? [];
  if (origin === undefined) return target;
  const rest = target.slice(origin.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/** `203.0.113.7` of `203.0.113.7:1234`, `2001:db8::1` of `[2001:db8::1]:1234`. Other texts stay as they are. */
export function withoutPort(address: string): string {
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(address) ?? [];
  if (bracketed !== undefined) return bracketed;
  const colon = address.indexOf(":");
  return colon !== -1 && colon === address.lastIndexOf(":") ? address.slice(0, colon) : address;
}

/**
 * The address in a list of them, as in `X-Forwarded-For`: the last one, which the nearest proxy added. Those before it
 * are claims of the client.
 */
export function lastAddress(list: string): string {
  return withoutPort(list.slice(list.lastIndexOf(",") + 1).trim());
}
