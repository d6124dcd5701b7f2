import type { Limiter } from "sluice";
import { createTestService, type ListeningTransport, listenForTest } from "../../../../testing/test-service.ts";
import { wholeHttpServer } from "../../../../testing/whole-servers.ts";
import type { ServiceOptions } from "../../../service/create-service.ts";
import type { HttpContext } from "../exchange.ts";
import type { HttpServerOptions } from "../server.ts";

/** HTTP over a limiter, on a free port of loopback. */
export interface StartedHttp extends ListeningTransport {
  /** `http://127.0.0.1:34567` */
  readonly url: string;
}

type Overrides = Partial<Omit<ServiceOptions, "limiter"> & Omit<HttpContext, "limiter">>;

export async function startHttp(
  limiter: Limiter,
  overrides: Overrides = {},
  options: HttpServerOptions = {},
): Promise<StartedHttp> {
  const { idempotencyHeader = false, random, authorizeDimensions, envoyHeaders, ...service } = overrides;
  const context: HttpContext = {
    ...createTestService(limiter, service),
    idempotencyHeader,
    random,
    authorizeDimensions,
    envoyHeaders,
  };
  const listening = await listenForTest("http", await wholeHttpServer(context, options));
  return { ...listening, url: `http://${listening.address}` };
}
