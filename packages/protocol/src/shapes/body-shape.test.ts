import { describe, expect, it } from "vitest";
import {
  anything,
  asIs,
  type BodyOf,
  boolean,
  byKind,
  choice,
  constant,
  described,
  fromView,
  integer,
  listOf,
  mapOf,
  number,
  renderedBy,
  text,
  type ViewOf,
} from "./body-shape.ts";
import { objectOf, optional } from "./object-body.ts";

/** The JSON of a body, as it travels. */
const travel = (body: unknown): unknown => JSON.parse(JSON.stringify(body));

const step = objectOf({ percent: number, hold_ms: integer });
const rollout = objectOf({
  id: text,
  author: optional(text),
  from_version: integer,
  state: choice(["running", "done"]),
  steps: listOf(step),
});

describe("an object", () => {
  const view = {
    id: "r1",
    author: undefined,
    fromVersion: 2,
    state: "done",
    steps: [{ percent: 1, holdMs: 5 }],
  } as const;

  it("renders fields in snake_case, in the order of the shape, and leaves out undefined ones", () => {
    expect(JSON.stringify(rollout.render(view))).toBe(
      '{"id":"r1","from_version":2,"state":"done","steps":[{"percent":1,"hold_ms":5}]}',
    );
  });

  it("renders no field that the shape does not name", () => {
    const more = { ...view, digest: "secret" };
    expect(travel(rollout.render(more))).not.toHaveProperty("digest");
  });

  it("requires in its schema every field that is not optional, and permits further fields", () => {
    expect(rollout.schema).toEqual({
      type: "object",
      properties: {
        id: { type: "string" },
        author: { type: "string" },
        from_version: { type: "integer" },
        state: { enum: ["running", "done"] },
        steps: {
          type: "array",
          items: {
            type: "object",
            properties: { percent: { type: "number" }, hold_ms: { type: "integer" } },
            required: ["percent", "hold_ms"],
          },
        },
      },
      required: ["id", "from_version", "state", "steps"],
    });
    expect(objectOf({ author: optional(text) }).schema).not.toHaveProperty("required");
  });

  it("has the type of its body and of its view", () => {
    const body: BodyOf<typeof rollout> = { id: "r1", from_version: 1, state: "done", steps: [] };
    // @ts-expect-error the body's field is from_version
    expect(body.fromVersion).toBeUndefined();
    // @ts-expect-error a view must name fields that may be absent, so that a renamed field is noticed
    const short: ViewOf<typeof rollout> = { id: "r1", fromVersion: 1, state: "done", steps: [] };
    // @ts-expect-error not one of the words
    const wrong: ViewOf<typeof rollout> = { ...view, state: "paused" };
    expect([short.author, wrong.state]).toEqual([undefined, "paused"]);
  });
});

describe("other shapes", () => {
  it("chooses by kind, and lists shared shapes once", () => {
    const own = objectOf({ kind: choice(["policy", "custom"]) });
    const source = byKind({
      policy: own,
      custom: own,
      override: objectOf({ kind: constant("override"), until_ms: integer }),
    });
    expect(travel([source.render({ kind: "custom" }), source.render({ kind: "override", untilMs: 7 })])).toEqual([
      { kind: "custom" },
      { kind: "override", until_ms: 7 },
    ]);
    expect(source.schema.anyOf).toHaveLength(2);
  });

  it("passes plain values on unchanged", () => {
    expect(mapOf(number).render({ a_b: 1 })).toEqual({ a_b: 1 });
    expect(mapOf(number).schema).toEqual({ type: "object", additionalProperties: { type: "number" } });
    expect(anything.render({ someThing: [1] })).toEqual({ someThing: [1] });
    expect(asIs(step).render({ percent: 1, hold_ms: 2 })).toEqual({ percent: 1, hold_ms: 2 });
  });

  it("accepts another view, or another rendering, with the same schema", () => {
    const told = fromView(step, (minutes: number) => ({ percent: 100, holdMs: minutes * 60_000 }));
    const byHand = renderedBy(step, (percent: number) => ({ percent, hold_ms: 0 }));
    expect([told.render(2), byHand.render(3)]).toEqual([
      { percent: 100, hold_ms: 120_000 },
      { percent: 3, hold_ms: 0 },
    ]);
    expect([told.schema, byHand.schema]).toEqual([step.schema, step.schema]);
  });

  it("says in the schema what a value is for", () => {
    expect(described(boolean, "Only looked at.", { default: false }).schema).toEqual({
      type: "boolean",
      description: "Only looked at.",
      default: false,
    });
  });
});
