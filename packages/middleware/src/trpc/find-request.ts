export interface FoundRequest {
  /** The address at the other end of the connection. */
  readonly peer: string | undefined;
  /** As the framework's own settings find it; else the peer. */
  readonly ip: string | undefined;
  header(name: string): string | readonly string[] | undefined;
}

/** The shapes in which tRPC's adapters pass requests to a context. */
interface AnyRequest {
  readonly ip?: unknown;
  readonly socket?: { readonly remoteAddress?: string | undefined };
  readonly headers?: Readonly<Record<string, unknown>>;
}

/** The context's `req`: of Node, Express, Fastify, a WebSocket, or fetch, which has no addresses. */
export function findRequest(ctx: unknown): FoundRequest | undefined {
  const { req } = (ctx ?? {}) as { readonly req?: unknown };
  if (typeof req !== "object" || req === null) return undefined;
  const { ip, socket, headers } = req as AnyRequest;
  const peer = socket?.remoteAddress;
  return {
    peer,
    ip: typeof ip === "string" ? ip : peer,
    header: (name) => {
      if (headers instanceof Headers) return headers.get(name) ?? undefined;
      return headers?.[name] as string | readonly string[] | undefined;
    },
  };
}
