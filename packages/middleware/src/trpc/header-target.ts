/** Where headers can be set: `Headers`, or the response of Node, Express or Fastify. */
export type HeaderTarget =
  | Pick<Headers, "set">
  | { setHeader(name: string, value: string): unknown; readonly headersSent?: boolean }
  | { header(name: string, value: string): unknown; readonly sent?: boolean };

/** The context's `resHeaders`, the name in tRPC's fetch adapter, or `res`, the name in the others. */
export function findHeaderTarget(ctx: unknown): HeaderTarget | undefined {
  const { resHeaders, res } = (ctx ?? {}) as Readonly<Record<string, unknown>>;
  return [resHeaders, res].find(isHeaderTarget);
}

function isHeaderTarget(value: unknown): value is HeaderTarget {
  if (typeof value !== "object" || value === null) return false;
  return ["set", "setHeader", "header"].some((name) => typeof Reflect.get(value, name) === "function");
}

/** Does nothing if headers are sent already, as in a streamed batch. tRPC writes its own `Content-Type`. */
export function setHeaders(target: HeaderTarget | undefined, headers: Readonly<Record<string, string>>): void {
  if (target === undefined) return;
  for (const name in headers) {
    if (name === "content-type") continue;
    const value = headers[name]!;
    if ("setHeader" in target) {
      if (target.headersSent !== true) target.setHeader(name, value);
    } else if ("header" in target) {
      if (target.sent !== true) target.header(name, value);
    } else target.set(name, value);
  }
}
