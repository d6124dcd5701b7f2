import { choice, described, integer, listOf, number, objectOf, type Shape, text } from "sluice/shape";
import { changeFields } from "./policy-shapes.ts";

const dimension = text({ max: 128, pattern: /^[\w.-]+$/, form: "letters, digits or . _ -" });

export interface RecordingStartBody {
  readonly for_ms?: number;
  readonly max_bytes?: number;
  readonly share_percent?: number;
  readonly share_by?: string;
  readonly hash?: readonly string[];
  readonly why?: string;
}

export const recordingStart: Shape<RecordingStartBody> = objectOf(
  {},
  {
    for_ms: described(integer({ min: 1_000, max: 31 * 86_400_000 }), "How long.", { default: 3_600_000 }),
    max_bytes: described(integer({ min: 65_536, max: 1024 ** 4 }), "How large, compressed.", { default: 1024 ** 3 }),
    share_percent: described(number({ min: 0.001, max: 100 }), "The share of subjects to record, whole.", {
      default: 100,
    }),
    share_by: described(dimension, "The dimension that names those subjects. Required for less than 100 percent."),
    hash: described(listOf(dimension, { max: 16 }), "Dimensions whose values are recorded as hashes."),
    why: changeFields.why,
  },
);

export interface SimulationRequestBody {
  readonly source: { readonly recording?: string; readonly log?: string; readonly log_base64?: string };
  readonly format?: string;
  readonly map?: readonly string[];
  readonly candidate: { readonly file?: string; readonly policies?: readonly string[] };
  readonly now?: "policies" | "recorded";
  readonly find_limit?: string;
}

/** A compressed log of this size has some 100 000 requests. */
export const maxSimulationBytes: number = 4 * 1024 * 1024;
const longText = text({ max: maxSimulationBytes });

export const simulationRequest: Shape<SimulationRequestBody> = objectOf(
  {
    source: described(
      objectOf(
        {},
        {
          recording: described(text({ max: 64 }), "The id of a recording of this node."),
          log: described(longText, "An access log."),
          log_base64: described(longText, "The same in base64: compressed with gzip or zstd, or not."),
        },
      ),
      "One of these.",
    ),
    candidate: described(
      objectOf(
        {},
        {
          file: described(longText, "A whole policy file, in YAML or JSON, instead of the policies in force."),
          policies: described(
            listOf(longText, { min: 1, max: 1_000 }),
            "Policies, in YAML or JSON. Each replaces the one of its id among those in force, or is added.",
          ),
        },
      ),
      "One of these.",
    ),
  },
  {
    format: described(text({ max: 32 }), "The form of the log. Absent: found out by its first line."),
    map: described(listOf(text({ max: 256 }), { max: 32 }), "Where dimensions are: `tenant=header:x-tenant`."),
    now: described(
      choice(["policies", "recorded"]),
      "What to compare with: the policies in force, or what was recorded.",
      {
        default: "policies",
      },
    ),
    find_limit: described(text({ max: 256 }), "A policy of the candidate whose limits are tried at several sizes."),
  },
);
