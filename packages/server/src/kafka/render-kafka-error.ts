interface NestedError {
  readonly message?: unknown;
  readonly apiId?: unknown;
  readonly errors?: unknown;
  readonly cause?: unknown;
}

/** How deep errors are nested at most. */
const maxDepth = 6;

/**
 * The reason inside the client's nested errors, for logs: the broker's own code if there is one
 * (`TOPIC_AUTHORIZATION_FAILED`), else the innermost message. None of them contains a password.
 */
export function renderKafkaError(error: unknown): string {
  const chain = [...nestedErrors(error, 0)];
  const code = chain.find(({ apiId }) => typeof apiId === "string")?.apiId as string | undefined;
  const message = String(chain.findLast((one) => typeof one.message === "string" && one.message !== "")?.message ?? "");
  if (code === undefined) return message === "" ? String(error) : message;
  return message === "" || message.includes(code) ? code : `${code}: ${message}`;
}

/** Whether a broker refused with one of these codes. */
export function hasKafkaCode(error: unknown, ...codes: readonly string[]): boolean {
  return [...nestedErrors(error, 0)].some(({ apiId }) => typeof apiId === "string" && codes.includes(apiId));
}

/** Whether the brokers know no such topic. The client words that differently. */
export function isUnknownTopic(error: unknown): boolean {
  if (hasKafkaCode(error, "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")) return true;
  return [...nestedErrors(error, 0)].some(({ message }) => /^Unknown topic /.test(String(message)));
}

function* nestedErrors(error: unknown, depth: number): Generator<NestedError> {
  if (typeof error !== "object" || error === null || depth > maxDepth) return;
  const one = error as NestedError;
  yield one;
  if (Array.isArray(one.errors)) for (const each of one.errors) yield* nestedErrors(each, depth + 1);
  yield* nestedErrors(one.cause, depth + 1);
}
