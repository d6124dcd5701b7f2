import { notFound } from "next/navigation.js";
import { limited } from "../../limited.ts";

export const GET = limited(async () => notFound());
