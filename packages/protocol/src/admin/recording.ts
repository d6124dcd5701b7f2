import {
  type BodyOf,
  boolean,
  choice,
  described,
  epochMs,
  integer,
  listOf,
  number,
  text,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { changeShape } from "./change.ts";

/** Decided requests, kept by a node for simulations. */
export const recording = objectOf({
  id: text,
  node: described(text, "The name of the node that recorded it, and keeps it."),
  state: choice(["recording", "done", "failed"]),
  started_ms: epochMs,
  ends_ms: described(integer, "When it ends at the latest, in epoch milliseconds."),
  ended_ms: optional(epochMs),
  end_reason: optional(described(text, "`time`, `size`, `stopped`, `shutdown` or `error`.")),
  requests: described(integer, "Requests that it has so far."),
  dropped: described(integer, "Requests that it lacks because writing did not keep up."),
  left_out: described(integer, "Previews, repeated ids, and requests of subjects that are not in the sample."),
  bytes: described(integer, "Its size on disk, compressed."),
  max_bytes: integer,
  share_percent: described(number, "The share of subjects that is recorded."),
  share_by: optional(described(text, "The dimension that names them.")),
  hashed: described(listOf(text), "Dimensions whose values are hashed."),
  started_by: text,
  generation: described(integer, "The generation of the policies when it began."),
});
export type RecordingBody = BodyOf<typeof recording>;

export const recordingList = objectOf({
  enabled: described(boolean, "Whether this server keeps recordings (`--recordings`)."),
  items: listOf(recording),
});
export type RecordingListBody = BodyOf<typeof recordingList>;

export const recordingChange = changeShape({ recording });
export type RecordingChangeBody = BodyOf<typeof recordingChange>;
