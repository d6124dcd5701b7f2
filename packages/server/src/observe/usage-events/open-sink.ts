import { SettingError } from "../../settings/parse-settings.ts";
import type { EventSink } from "./event-sink.ts";

export interface OpenSinkOptions {
  /** Stands for this process among several behind the same ports. */
  readonly worker?: number | undefined;
}

/**
 * Opens the sink that a URL names. Does not connect yet: a receiver that is down does not keep a server from starting.
 * Throws a `SettingError` if it is no sink's URL.
 */
export async function openSink(url: string, _options: OpenSinkOptions): Promise<EventSink> {
  const scheme = /^([a-z][a-z+]*):/.exec(url)?.[1];
  switch (scheme) {
    // One case for each sink, which loads what it needs: case "kafka": return (await import("./kafka-sink.ts")).openKafkaSink(url, …)
    default:
      // The URL may contain a password, and is not repeated.
      throw new SettingError(["usageEvents"], "should be http(s)://…, redis(s)://…, redis: or file:PATH");
  }
}
