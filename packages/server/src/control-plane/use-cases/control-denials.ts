import type { DenialQuery, DenialRecord } from "@sluice/sql";
import type { Actor } from "../../data-plane/access/actor.ts";
import { invalidField } from "../control-errors.ts";
import type { DenialControl, DenialRequest } from "../denial-control.ts";
import { denialSubject } from "../denials/denial-subject.ts";
import { readStore } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import { findOwned } from "./find-owned.ts";
import { parsePageLimit, renderPage } from "./page.ts";

const dayMs = 86_400_000;

export function createDenialControl(context: ControlContext): DenialControl {
  return {
    async list(actor, request) {
      const audited = { action: "denial.list", kind: "denial", target: "" };
      // Denials of this node may be a few seconds old when they are stored; a reader here sees them at once.
      if (actor.caller.may.has("read")) await context.flushDenials();
      return readStore(context, actor, audited, async (view) => {
        const limit = parsePageLimit(request);
        const query = readRequest(request, actor, context);
        const rows = await view.denials({ ...query, after: readAfter(request.after), atMost: limit + 1 });
        const { denials } = await view.countDenials(query);
        const { mixed } = await view.countDenials({ ...query, found: undefined });
        return { ...renderPage(rows, limit, renderCursor, (row) => row), denials, mixed };
      });
    },
  };
}

function readRequest(
  request: DenialRequest,
  { caller }: Actor,
  context: ControlContext,
): Omit<DenialQuery, "after" | "atMost"> {
  const nowMs = context.nowMs();
  const { dimension, subject, policy, fromMs = nowMs - dayMs, toMs = nowMs + 1 } = request;
  if (fromMs >= toMs) throw invalidField(["from_ms"], "must be before to_ms");
  if (subject !== undefined && dimension === undefined)
    throw invalidField(["subject"], "needs its dimension, such as dimension=tenant&subject=acme");
  if (dimension !== undefined && subject === undefined)
    throw invalidField(["dimension"], "needs a subject, such as dimension=tenant&subject=acme");
  const found =
    dimension === undefined || subject === undefined
      ? undefined
      : { dimension, subject: denialSubject(dimension, subject, context.ipv6PrefixBits) };
  return { fromMs, toMs, policy, limit: request.ofLimit, found, owned: findOwned(caller, context) };
}

function renderCursor({ atMs, id }: DenialRecord): string {
  return `${atMs}-${id}`;
}

function readAfter(after: string | undefined): DenialQuery["after"] {
  if (after === undefined) return undefined;
  const [, atMs, id] = /^(\d{1,15})-([0-9a-z]{1,64})$/.exec(after) ?? [];
  if (id === undefined) throw invalidField(["after"], "must be `next` of the previous page");
  return { atMs: Number(atMs), id };
}
