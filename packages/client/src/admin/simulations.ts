import type { SimulationBody, SimulationListBody } from "@sluice/protocol/admin";
import type { AdminRequests, CallOptions } from "./admin-requests.ts";

export interface SimulationRequest {
  /** One of: a recording of the node that answers, an access log, or its bytes in base64, compressed or not. */
  readonly source: { readonly recording?: string; readonly log?: string; readonly logBase64?: string };
  readonly format?: string | undefined;
  readonly map?: readonly string[] | undefined;
  /** One of: a whole policy file, or policies that replace those of their ids among the ones in force. */
  readonly candidate: { readonly file?: string; readonly policies?: readonly string[] };
  /** What to compare with. Absent: the policies in force. */
  readonly now?: "policies" | "recorded" | undefined;
  readonly findLimit?: string | undefined;
}

/** What policies would have done to recorded requests. */
export class AdminSimulations {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  /** Newest first, without documents. */
  list(options?: CallOptions): Promise<SimulationListBody> {
    return this.#requests.ask("GET", "simulations", { options });
  }

  /** Runs in the background: ask `get` until its state is neither `waiting` nor `running`. */
  create(request: SimulationRequest, options?: CallOptions): Promise<SimulationBody> {
    const { source, findLimit, ...rest } = request;
    const { logBase64, ...others } = source;
    const body = { ...rest, source: { ...others, log_base64: logBase64 }, find_limit: findLimit };
    return this.#requests.ask("POST", "simulations", { body, options });
  }

  get(id: string, options?: CallOptions): Promise<SimulationBody> {
    return this.#requests.ask("GET", `simulations/${encodeURIComponent(id)}`, { options });
  }

  /** Cancels it, or forgets it if it has ended. */
  delete(id: string, options?: CallOptions): Promise<SimulationBody> {
    return this.#requests.ask("DELETE", `simulations/${encodeURIComponent(id)}`, { options });
  }
}
