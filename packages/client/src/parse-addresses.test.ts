import { describe, expect, it } from "vitest";
import { parseAddresses } from "./parse-addresses.ts";

describe("addresses", () => {
  it.each([
    ["grpc://10.0.0.5:8081,10.0.0.6:8082", ["grpc 10.0.0.5:8081", "grpc 10.0.0.6:8082"]],
    ["grpc://localhost", ["grpc localhost:8081"]],
    ["grpcs://[::1]:9,[::2]", ["grpcs [::1]:9", "grpcs [::2]:8081"]],
    ["grpc://first:1, second:2", ["grpc first:1", "grpc second:2"]],
    ["http://a.internal/,https://b.internal", ["http a.internal:80", "https b.internal:443"]],
    ["https://gateway/limits/", ["https gateway:443/limits"]],
    ["grpc+unix:/run/sluice.sock", ["grpc /run/sluice.sock"]],
    ["http+unix:///run/sluice.sock", ["http /run/sluice.sock"]],
    [
      ["grpc://a:1", "grpc://b:1"],
      ["grpc a:1", "grpc b:1"],
    ],
  ])("are read: %j", (written, expected) => {
    const found = parseAddresses(written, ["grpc", "http"]);
    expect(found.map(({ scheme, tls, name, basePath }) => `${scheme}${tls ? "s" : ""} ${name}${basePath}`)).toEqual(
      expected,
    );
  });

  it("have hosts without brackets", () => {
    expect(parseAddresses("grpc://[::1]:9", ["grpc"])[0]!.place).toEqual({ kind: "port", host: "::1", port: 9 });
  });

  it.each([
    ["", /grpc:\/\/10\.0\.0\.5:8081/],
    ["10.0.0.5:8081", /grpc:\/\/10\.0\.0\.5:8081/],
    ["redis://10.0.0.5", /must be grpc:/],
    ["grpc://", /must be grpc:/],
    ["grpc://a:99999", /must be grpc:/],
    ["grpc://a/path", /nothing after the port/],
    ["http://a?x=1", /nothing after the port/],
    ["grpc://user:secret@a", /token/],
    ["grpc+unix:run/sluice.sock", /whole path/],
    ["unix:/run/sluice.sock", /must be grpc:/],
    ["grpc://a,a", /twice/],
    [["grpc://a", 5], /list of such texts/],
    [undefined, /list of such texts/],
  ])("are refused, with what they should be: %j", (written, message) => {
    expect(() => parseAddresses(written as string, ["grpc", "http"])).toThrow(message);
  });

  it("never show a password", () => {
    for (const written of ["grpc://user:secret@a", "redis://user:secret@a"]) {
      expect(() => parseAddresses(written, ["grpc"])).toThrow(
        expect.objectContaining({ message: expect.not.stringContaining("secret") }),
      );
    }
  });

  it("of gRPC, with only HTTP supported, refer to the package that supports them", () => {
    expect(() => parseAddresses("grpc://a", ["http"])).toThrow('"@sluice/client"');
  });
});
