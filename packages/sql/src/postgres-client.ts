import pg from "pg";

const keepAliveAfterMs = 10_000;
const int8 = 20;

export interface PostgresPlace {
  readonly config: pg.ClientConfig;
  /** Without user and password. */
  readonly where: string;
}

/** How a URL's server is connected to. Throws a `TypeError`, without the URL, where that is none. */
export function findPostgres(url: string, applicationName = "sluice"): PostgresPlace {
  const config: pg.ClientConfig = {
    connectionString: url,
    application_name: applicationName,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveAfterMs,
    types: { getTypeParser: (type, format) => (type === int8 ? parseInt8 : pg.types.getTypeParser(type, format)) },
  };
  try {
    const { host, port, database } = new pg.Client(config);
    return { config, where: `postgres://${host.includes(":") ? `[${host}]` : host}:${port}/${database ?? ""}` };
  } catch (error) {
    throw new TypeError(`the policy store's postgres URL is of no use: ${(error as Error).message}`);
  }
}

/** Lets go of a connection at once, whatever is on its way. What was asked on it is rejected. */
export function cutConnection(client: pg.Client | pg.PoolClient): void {
  (client as pg.Client).connection.stream.destroy();
}

function parseInt8(digits: string): number {
  const number = Number(digits);
  if (!Number.isSafeInteger(number)) throw new RangeError(`the policy store holds ${digits}, which is beyond 2^53`);
  return number;
}
