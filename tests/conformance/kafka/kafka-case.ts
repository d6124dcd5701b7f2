import type { RealKafka } from "./start-kafka.ts";

/** Something that Sluice does with a real broker. */
export interface KafkaCase {
  /** A sentence. */
  readonly name: string;
  /** Leaves the broker running. */
  run(kafka: RealKafka): Promise<void>;
}
