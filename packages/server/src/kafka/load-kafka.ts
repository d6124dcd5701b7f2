import { SettingError } from "../settings/parse-settings.ts";
import type { Settings } from "../settings/settings.ts";

/** The Kafka client library. It is an optional peer of this package, loaded only if a setting needs it. */
export type Kafka = typeof import("@platformatic/kafka");

/** Throws a `SettingError` that says what to install. `needed` is the setting that asks for Kafka. */
export async function loadKafka(
  needed: keyof Settings,
  load: () => Promise<Kafka> = () => import("@platformatic/kafka"),
): Promise<Kafka> {
  try {
    return await load();
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw new SettingError(
      [needed],
      "asks for Kafka, and its client is not installed. Install it where @sluice/server is installed: " +
        "npm install @platformatic/kafka@2 (it needs Node 22.22 or 24.6 and later)",
    );
  }
}

/** Whether the package itself is missing. A package that it needs and does not find is another mistake. */
function isMissing(error: unknown): boolean {
  const { code, message = "" } = error as NodeJS.ErrnoException;
  return code === "ERR_MODULE_NOT_FOUND" && message.includes("'@platformatic/kafka'");
}
