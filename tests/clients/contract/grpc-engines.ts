/** What answers gRPC in the server. Every engine is held to the same contract; they may differ in what is named here. */
export interface GrpcEngine {
  readonly name: string;
  /** The settings that choose it. */
  readonly settings: Readonly<Record<string, string>>;
  /** What it does with a message that is compressed with gzip. */
  readonly gzip: "reads" | "refuses";
  /** Whether it names the encodings that it reads when it refuses another one. */
  readonly namesEncodings: boolean;
}

export const grpcEngines: readonly GrpcEngine[] = [
  { name: "Sluice", settings: { grpcEngine: "sluice" }, gzip: "refuses", namesEncodings: true },
  { name: "grpc-js", settings: { grpcEngine: "grpc-js" }, gzip: "reads", namesEncodings: false },
];
