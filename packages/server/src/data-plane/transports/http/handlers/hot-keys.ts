import { hotKeysHere } from "@sluice/protocol/http";
import { mergeHotKeys } from "../../../../observe/hot-keys/merge-hot-keys.ts";
import { createHideSubject } from "../../../../observe/telemetry/hide-subjects.ts";
import type { Handler, HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";
import { hotKeysQuery } from "../hot-keys-query.ts";
import { readQuery } from "../read-query.ts";

/**
 * GET /v1/hot-keys: which counters are asked for most on this server, including all its workers. Subjects may be
 * addresses, or keys that open something: callers without a token see their hashes.
 */
export function createHotKeys(): Handler {
  const hide = createHideSubject();
  return async ({ url, caller }: HttpRequest, { hotKeys }: HttpContext): Promise<HttpResponse> => {
    const wish = readQuery(hotKeysQuery, url);
    const merged = mergeHotKeys(await hotKeys(), wish);
    const hashed = caller.role === undefined;
    const keys = hashed ? merged.keys.map((key) => ({ ...key, subject: hide(key.subject) })) : merged.keys;
    return { status: 200, body: hotKeysHere.render({ ...merged, keys, silent: undefined, hashed }) };
  };
}
