import { limited } from "../../limited.ts";

export const POST = limited((request) => new Response(request.body));
