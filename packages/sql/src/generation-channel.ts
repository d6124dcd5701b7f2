/** Where PostgreSQL tells of a new generation. What it says is the generation's number, in digits. */
export const generationChannel = "sluice_generation";
