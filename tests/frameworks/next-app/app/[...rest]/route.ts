import { limited } from "../../limited.ts";

export const GET = limited(() => new Response("nothing", { status: 404 }));
