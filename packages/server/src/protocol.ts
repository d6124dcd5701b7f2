/** The protocols that a server speaks. Each has ports, metrics and traces under this name. */
export const protocols = ["http", "grpc", "resp", "admin"] as const;
export type Protocol = (typeof protocols)[number];

/** Why a connection was closed before it was served. */
export type TurnedAway = "too_many" | "too_many_of_address" | "tls" | "client_name" | "held_bytes";
