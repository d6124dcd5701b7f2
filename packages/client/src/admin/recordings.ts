import type { RecordingBody, RecordingChangeBody, RecordingListBody } from "@sluice/protocol/admin";
import type { AdminRequests, CallOptions, ChangeOptions } from "./admin-requests.ts";

/** What to record, and for how long. */
export interface RecordingStartRequest {
  /** Absent: an hour. */
  readonly forMs?: number | undefined;
  /** Compressed. Absent: 1 GiB. */
  readonly maxBytes?: number | undefined;
  /** The share of subjects, which are recorded whole, and the dimension that names them. Absent: all. */
  readonly sharePercent?: number | undefined;
  readonly shareBy?: string | undefined;
  /** Dimensions whose values are recorded as hashes. */
  readonly hash?: readonly string[] | undefined;
}

/** Decided requests that the node that answers keeps, for simulations. */
export class AdminRecordings {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  /** Newest first. */
  list(options?: CallOptions): Promise<RecordingListBody> {
    return this.#requests.ask("GET", "recordings", { options });
  }

  get(id: string, options?: CallOptions): Promise<RecordingBody> {
    return this.#requests.ask("GET", `recordings/${encodeURIComponent(id)}`, { options });
  }

  start(request: RecordingStartRequest = {}, options: ChangeOptions = {}): Promise<RecordingChangeBody> {
    const { forMs, maxBytes, sharePercent, shareBy, hash } = request;
    const body = { for_ms: forMs, max_bytes: maxBytes, share_percent: sharePercent, share_by: shareBy, hash };
    return this.#requests.ask("POST", "recordings", { body, options });
  }

  stop(id: string, options: ChangeOptions = {}): Promise<RecordingChangeBody> {
    return this.#requests.ask("POST", `recordings/${encodeURIComponent(id)}/stop`, { body: {}, options });
  }

  delete(id: string, options: ChangeOptions = {}): Promise<RecordingChangeBody> {
    return this.#requests.ask("DELETE", `recordings/${encodeURIComponent(id)}`, { options });
  }
}
