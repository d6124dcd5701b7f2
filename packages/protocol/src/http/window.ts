import type { Window } from "sluice";
import { renderDuration, windowLabel } from "sluice/internal";
import {
  anyOf,
  type BodyOf,
  type BodyShape,
  choice,
  described,
  number,
  renderedBy,
  text,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";

const period = anyOf(
  described(text, "A duration, or never.", { examples: ["1s", "15m", "never"] }),
  objectOf({ calendar: choice(["day", "month"]), time_zone: text }),
);

const windowFields = objectOf({
  name: optional(text),
  limit: number,
  per: period,
  burst: optional(number),
  label: optional(
    described(
      text,
      "In decisions: distinguishes it from other windows under the same policy and scope. Absent if it is the only one.",
    ),
  ),
});

/** A window as a policy file has it in full. */
export type WindowBody = BodyOf<typeof windowFields>;

export const window: BodyShape<Window, WindowBody> = renderedBy(windowFields, ({ limit, per, burst, name }) => {
  const label = undefined;
  switch (per.kind) {
    case "ms":
      return { name, limit, per: renderDuration(per.ms), burst, label };
    case "calendar":
      return { name, limit, per: { calendar: per.unit, time_zone: per.timeZone }, burst: undefined, label };
    case "never":
      return { name, limit, per: "never", burst: undefined, label };
  }
});

/** Windows live as long as their snapshot and are rendered over and over. */
const labelledBodies = new WeakMap<Window, WindowBody>();

/** A window in a decision: with its label. */
export const labelledWindow: BodyShape<Window, WindowBody> = {
  schema: window.schema,
  render(view) {
    let body = labelledBodies.get(view);
    if (body === undefined) {
      body = { ...window.render(view), label: windowLabel(view) };
      labelledBodies.set(view, body);
    }
    return body;
  },
};
