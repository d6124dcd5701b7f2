// Records where Go's net/http takes each request target of a list: see print-spellings.ts for how to run it.
//
// Reads a JSON list of targets, each character a byte, and writes a JSON object: by target, the route that a ServeMux runs
// ("" if it runs none of them, or redirects) and the path that a handler sees; null for what Go refuses as a request.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
)

func main() {
	var targets []string
	if err := json.NewDecoder(os.Stdin).Decode(&targets); err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	for pattern, route := range map[string]string{
		"/v1/login":         "login",
		"/v1/orders/":       "orders",
		"/v1/items/{item}":  "item",
		"/t/{tenant}/login": "tenant",
		"/café":             "cafe",
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Route", route) })
	}
	readings := map[string][]string{}
	for _, target := range targets {
		line := append(append([]byte("GET "), latin1(target)...), " HTTP/1.1\r\nHost: h\r\n\r\n"...)
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(line)))
		if err != nil {
			readings[target] = nil
			continue
		}
		recorder := httptest.NewRecorder()
		mux.ServeHTTP(recorder, request)
		readings[target] = []string{recorder.Header().Get("Route"), request.URL.Path}
	}
	regenerate := "npx node -C source tests/gateways/go-paths/print-spellings.ts | go run tests/gateways/go-paths/main.go"
	fmt.Printf("{\n%s: %s,\n", encode("recordedWith"), encode(runtime.Version()))
	fmt.Printf("%s: %s,\n%s: {\n", encode("regenerate"), encode(regenerate+" > tests/gateways/go-paths/generated/readings.json"), encode("readings"))
	for i, target := range targets {
		end := ","
		if i == len(targets)-1 {
			end = ""
		}
		fmt.Printf("%s: %s%s\n", encode(target), encode(readings[target]), end)
	}
	fmt.Println("}\n}")
}

func encode(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return strings.TrimSpace(text.String())
}

func latin1(text string) []byte {
	var b []byte
	for _, r := range text {
		b = append(b, byte(r))
	}
	return b
}
