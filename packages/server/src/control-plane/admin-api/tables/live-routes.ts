import { type LiveTopic, liveTopics } from "@sluice/protocol/admin";
import { described, type Shape, text } from "sluice/shape";
import { watchLive } from "../handlers/live.ts";
import { yesOrNo } from "../query-parameters.ts";
import { type AdminRoute, adminRoute } from "../route.ts";

/** Some of the topics, separated by commas. */
const topics: Shape<readonly LiveTopic[]> = {
  name: "topics separated by commas",
  schema: { type: "string", pattern: "^(overview|decisions|changes)(,(overview|decisions|changes))*$" },
  read: (value, reading) => {
    const words = String(value).split(",");
    const wrong = words.find((one) => !(liveTopics as readonly string[]).includes(one));
    return wrong === undefined
      ? (words as LiveTopic[])
      : reading.problem(`must be some of ${liveTopics.join(", ")}, but has ${JSON.stringify(wrong)}`);
  },
};

const word = text({ max: 256 });

const query = {
  with: described(topics, "Topics to watch on the same connection, with commas: overview, decisions, changes"),
  policy: described(word, "For decisions: only those of this policy"),
  dimension: described(word, "For decisions: only requests with a value of this dimension"),
  subject: described(text({ max: 4_096 }), "For decisions: only this value, of that dimension or of any"),
  allowed: described(yesOrNo, "For decisions: only allowed ones, or only denied ones"),
  reason: described(word, "For decisions: only those for this reason"),
};

const summaries: Readonly<Record<LiveTopic, string>> = {
  overview: "Watch the rates of the node that answers, once a second",
  decisions: "Watch a fair sample of the decisions of the node that answers",
  changes: "Watch what is changed, and by whom",
};

export const liveRoutes: readonly AdminRoute[] = liveTopics.map((topic) =>
  adminRoute({
    method: "GET",
    path: `/api/v1/live/${topic}`,
    summary: summaries[topic],
    action: `live.${topic}`,
    needs: "read",
    query,
    answers: {
      200: {
        description: "Server-sent events, each with the name of its topic, until one named `end`",
        content: "text/event-stream",
        headers: { "X-Accel-Buffering": "Asks proxies to pass on each event at once" },
      },
    },
    handle: watchLive(topic),
  }),
);
