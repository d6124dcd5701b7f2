import {
  anything,
  type BodyOf,
  choice,
  described,
  epochMs,
  integer,
  listOf,
  number,
  text,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";

/** What policies would have done to recorded requests. */
export const simulation = objectOf({
  id: text,
  node: described(text, "The name of the node that runs it."),
  state: choice(["waiting", "running", "done", "failed", "cancelled"]),
  created_ms: epochMs,
  started_ms: optional(epochMs),
  ended_ms: optional(epochMs),
  created_by: text,
  recording: optional(described(text, "The recording that is replayed. Absent: a log that was sent along.")),
  log_bytes: optional(integer),
  progress: described(number, "How much of the recording is read, 0 to 1."),
  requests: integer,
  error: optional(described(objectOf({ message: text }), "Why it failed.")),
  document: optional(
    described(anything, "Of one that is done: what `sluice simulate --json` prints. Lists leave it out."),
  ),
});
export type SimulationBody = BodyOf<typeof simulation>;

export const simulationList = objectOf({ items: listOf(simulation) });
export type SimulationListBody = BodyOf<typeof simulationList>;
