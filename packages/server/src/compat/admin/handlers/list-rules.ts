import { answerPage, type Body } from "../../../control-plane/admin-api/answer.ts";
import type { AdminContext, AdminRequest } from "../../../control-plane/admin-api/route.ts";
import type { Listed } from "../../../control-plane/change.ts";
import { createYield } from "../../../control-plane/create-yield.ts";
import type { StoredPolicy } from "../../../control-plane/policy-control.ts";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import { readRules } from "../read-rules.ts";
import { otherApiKey } from "../rule.ts";
import { findCreated, ruleBodies } from "../rule-body.ts";
import type { RuleVocabulary } from "../rule-vocabulary.ts";

/** Selects the page, and by the vocabulary's name for it the dimension. */
export interface ListQuery {
  readonly [name: string]: unknown;
  readonly limit?: number;
  readonly after?: string;
}

/** How many pages of the list of policies are read for one answer. */
const maxParts = 10;

/** The rules of up to `limit` policies, with one entry for each policy that is not a rule. */
export function listRules(vocabulary: RuleVocabulary) {
  return async (request: AdminRequest<undefined, ListQuery>, { control }: AdminContext): Promise<HttpResponse> => {
    const { actor, query, url } = request;
    const { limit = 100 } = query;
    const asked = vocabulary.listedBy.map((name) => query[name] as string | undefined).find((one) => one !== undefined);
    const dimension = asked === otherApiKey ? "api_key" : asked;
    const found: StoredPolicy[] = [];
    const yieldIfDue = createYield();
    let next = query.after;
    for (let part = 0; part < maxParts && found.length < limit; part++) {
      const page: Listed<StoredPolicy> = await control.policies.list(actor, {
        after: next,
        limit: limit - found.length,
      });
      for (const stored of page.items) {
        await yieldIfDue();
        if (dimension === undefined || isBy(stored, dimension)) found.push(stored);
      }
      next = page.next;
      if (next === undefined) break;
    }
    const created = await findCreated(control.policies, actor, found);
    const items = found.flatMap((stored, index) => ruleBodies(stored, created[index], vocabulary));
    return answerPage<Body>({ items, next }, (item) => item, url);
  };
}

function isBy({ id, document }: StoredPolicy, dimension: string): boolean {
  const read = readRules(id, document);
  return read.kind === "rules" && read.rules[0].dimension === dimension;
}
