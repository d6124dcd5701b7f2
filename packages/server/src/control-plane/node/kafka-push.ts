import type { Logger } from "../../observe/telemetry/logger.ts";
import type { PolicyTopic } from "../policy-topic/policy-topic.ts";
import type { Push } from "./push.ts";
import { createPushLog } from "./push-log.ts";

/** Push by a Kafka topic, which also carries the generations themselves. Closing it leaves the topic open. */
export function createKafkaPush(topic: PolicyTopic, log: Logger): Push {
  const pushLog = createPushLog(log, topic.where);
  let notify: (generation?: number) => void = () => undefined;
  topic.listen({
    onConnected(): void {
      pushLog.connected();
      notify();
    },
    onLost: (reason) => pushLog.lost(reason),
    onAnnounced: (generation) => notify(generation),
    // A node whose store does not answer applies it from the topic.
    onGeneration: () => notify(topic.generation),
  });
  return {
    kind: "kafka",
    get connected(): boolean {
      return topic.connected;
    },
    announce: (generation) => topic.announce(generation),
    listen(onAnnounced): void {
      notify = onAnnounced;
    },
    close(): void {
      notify = () => undefined;
    },
  };
}
