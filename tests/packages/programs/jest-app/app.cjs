// An app in CommonJS, as docs/apps.md has it tested by Jest.
const { rateLimit } = require("@sluice/middleware/express");
const express = require("express");

const app = express();
app.use(rateLimit("1/m"));
app.get("/", (_request, response) => response.send("hello"));

module.exports = app;
