/** The channel on which PostgreSQL announces a new generation. The payload is its number, in digits. */
export const generationChannel = "sluice_generation";
