import { choice, described, type Shape, text } from "sluice/shape";
import { wholeNumber } from "../../../data-plane/transports/http/read-query.ts";
import { listDenials, listUsage, listUsageEvents } from "../handlers/usage.ts";
import { maxVersion, pageQuery } from "../query-parameters.ts";
import { type AdminRoute, adminRoute } from "../route.ts";

const groups = ["policy", "limit", "subject"] as const;

/** Some of the words, separated by commas. */
const groupBy: Shape<readonly (typeof groups)[number][]> = {
  name: "words separated by commas",
  schema: { type: "string", pattern: "^(policy|limit|subject)(,(policy|limit|subject))*$" },
  read: (value, reading) => {
    const words = String(value).split(",");
    const wrong = words.find((one) => !(groups as readonly string[]).includes(one));
    return wrong === undefined
      ? [...new Set(words as (typeof groups)[number][])]
      : reading.problem(`must be some of policy, limit and subject, but has ${JSON.stringify(wrong)}`);
  },
};

const word = text({ max: 256 });
const when = wholeNumber({ min: 0, max: maxVersion });
const subject = text({ max: 4_096 });
const format = described(choice(["json", "csv"]), "The form of the answer. Default: as `Accept` says, else json");

/** Shorter than a connection may stay silent while it waits for its answer. */
const maxWaitMs = 20_000;

const page = {
  description: "One page",
  headers: { Link: "The next page, if there is one" },
  alsoCsv: true,
};

export const usageRoutes: readonly AdminRoute[] = [
  adminRoute({
    method: "GET",
    path: "/api/v1/usage",
    summary: "Show how much policies and subjects were used over time",
    action: "usage.list",
    needs: "read",
    query: {
      step: described(choice(["minute", "hour", "day"]), "The length of a period", { default: "hour" }),
      from_ms: described(when, "Periods that begin at this time or later. Default: a day ago"),
      to_ms: described(when, "Periods that begin before this time. Default: now"),
      policy: described(word, "Only this policy"),
      limit_name: described(word, "Only the limit of this name, or that counts by these dimensions"),
      dimension: described(
        word,
        "Usage of subjects of this dimension, which is one of --usage-by. Default: the totals",
      ),
      subject: described(subject, "Usage of this subject of the dimension"),
      group_by: described(groupBy, "What to list separately, with commas: policy, limit, subject"),
      format,
      ...pageQuery,
    },
    answers: { 200: { ...page, content: ["UsagePage"] } },
    handle: listUsage,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/usage/events",
    summary: "Watch the usage events of the node that answers",
    action: "usage.tail",
    needs: "read",
    query: {
      after: described(word, "`next` of the previous answer. Default: only events from now on"),
      wait_ms: described(
        wholeNumber({ min: 0, max: maxWaitMs }),
        "How long to wait for an event, in milliseconds, if there is none yet",
        { default: 0 },
      ),
      policy: described(word, "Only events of this policy"),
      subject: described(subject, "Only events whose `subject` or `data.key` is this"),
    },
    answers: { 200: { description: "The events since `after`, oldest first", content: ["UsageEvents"] } },
    handle: listUsageEvents,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/denials",
    summary: "List recent denials, newest first, with the reason for each",
    action: "denial.list",
    needs: "read",
    query: {
      dimension: described(word, "Only requests with a value of this dimension, such as tenant"),
      subject: described(subject, "That value"),
      policy: described(word, "Only denials by this policy"),
      limit_name: described(word, "Only by the limit of this name, or that counts by these dimensions"),
      from_ms: described(when, "At this time or later. Default: a day ago"),
      to_ms: described(when, "Before this time. Default: now"),
      format,
      ...pageQuery,
    },
    answers: { 200: { ...page, content: ["DenialPage"] } },
    handle: listDenials,
  }),
];
