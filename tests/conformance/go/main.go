// Makes gRPC calls with grpc-go, as lines of JSON on stdin say, and writes a line of JSON for each call that has ended.
// The lines are described in tests/clients/adapters/driver-adapter.ts. Messages are bytes, so no .proto file is needed.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

type target struct {
	Address string `json:"address"`
	TLS     *struct {
		CA   string `json:"ca"`
		Cert string `json:"cert"`
		Key  string `json:"key"`
	} `json:"tls"`
}

type call struct {
	ID          int               `json:"id"`
	Target      target            `json:"target"`
	Method      string            `json:"method"`
	Kind        string            `json:"kind"`
	Requests    [][]byte          `json:"requests"`
	Metadata    map[string]string `json:"metadata"`
	TimeoutMs   int               `json:"timeoutMs"`
	CancelAfter int               `json:"cancelAfter"`
	HoldOpen    bool              `json:"holdOpen"`
	Gzip        bool              `json:"gzip"`
}

type outcome struct {
	ID        int               `json:"id"`
	Code      uint32            `json:"code"`
	Message   string            `json:"message"`
	Responses [][]byte          `json:"responses"`
	Headers   map[string]string `json:"headers"`
	Trailers  map[string]string `json:"trailers"`
}

// Messages as they are.
type bytesCodec struct{}

func (bytesCodec) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }
func (bytesCodec) Unmarshal(data []byte, message any) error {
	*message.(*[]byte) = append([]byte{}, data...)
	return nil
}
func (bytesCodec) Name() string { return "proto" }

var (
	channels     = map[string]*grpc.ClientConn{}
	channelsLock sync.Mutex
)

func channelFor(to target) (*grpc.ClientConn, error) {
	key, _ := json.Marshal(to)
	channelsLock.Lock()
	defer channelsLock.Unlock()
	if known, ok := channels[string(key)]; ok {
		return known, nil
	}
	secured := insecure.NewCredentials()
	if to.TLS != nil {
		authority, err := os.ReadFile(to.TLS.CA)
		if err != nil {
			return nil, err
		}
		config := &tls.Config{RootCAs: x509.NewCertPool()}
		config.RootCAs.AppendCertsFromPEM(authority)
		if to.TLS.Cert != "" {
			shown, err := tls.LoadX509KeyPair(to.TLS.Cert, to.TLS.Key)
			if err != nil {
				return nil, err
			}
			config.Certificates = []tls.Certificate{shown}
		}
		secured = credentials.NewTLS(config)
	}
	channel, err := grpc.NewClient(to.Address, grpc.WithTransportCredentials(secured), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(bytesCodec{})))
	channels[string(key)] = channel
	return channel, err
}

func perform(asked call) (outcome, error) {
	ended := outcome{ID: asked.ID, Responses: [][]byte{}}
	channel, err := channelFor(asked.Target)
	if err != nil {
		return ended, err
	}
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(context.Background(), metadata.New(asked.Metadata)))
	defer cancel()
	if asked.TimeoutMs > 0 {
		var cancelTimer context.CancelFunc
		ctx, cancelTimer = context.WithTimeout(ctx, time.Duration(asked.TimeoutMs)*time.Millisecond)
		defer cancelTimer()
	}
	options := []grpc.CallOption{}
	if asked.Gzip {
		options = append(options, grpc.UseCompressor("gzip"))
	}
	var header, trailer metadata.MD
	if asked.Kind == "unary" {
		var response []byte
		err = channel.Invoke(ctx, asked.Method, &asked.Requests[0], &response,
			append(options, grpc.Header(&header), grpc.Trailer(&trailer))...)
		if err == nil {
			ended.Responses = append(ended.Responses, response)
		}
	} else {
		header, trailer, err = converse(ctx, cancel, channel, asked, &ended, options)
	}
	answered := status.Convert(err)
	ended.Code, ended.Message = uint32(answered.Code()), answered.Message()
	ended.Headers, ended.Trailers = fields(header), fields(trailer)
	return ended, nil
}

func converse(ctx context.Context, cancel context.CancelFunc, channel *grpc.ClientConn, asked call, ended *outcome,
	options []grpc.CallOption) (metadata.MD, metadata.MD, error) {
	description := &grpc.StreamDesc{ServerStreams: true, ClientStreams: asked.Kind == "bidirectional"}
	stream, err := channel.NewStream(ctx, description, asked.Method, options...)
	if err != nil {
		return nil, nil, err
	}
	go func() {
		for index := range asked.Requests {
			if stream.SendMsg(&asked.Requests[index]) != nil {
				return
			}
		}
		if !asked.HoldOpen {
			_ = stream.CloseSend()
		}
	}()
	for {
		var response []byte
		err = stream.RecvMsg(&response)
		if err != nil {
			break
		}
		ended.Responses = append(ended.Responses, response)
		if len(ended.Responses) == asked.CancelAfter {
			cancel()
		}
	}
	header, _ := stream.Header()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return header, stream.Trailer(), err
}

func fields(metadata metadata.MD) map[string]string {
	shown := map[string]string{}
	for name, values := range metadata {
		shown[name] = values[0]
		if strings.HasSuffix(name, "-bin") {
			shown[name] = base64.StdEncoding.EncodeToString([]byte(values[0]))
		}
	}
	return shown
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		fmt.Println(grpc.Version)
		return
	}
	var running sync.WaitGroup
	var outputLock sync.Mutex
	output := json.NewEncoder(os.Stdout)
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var asked call
		if err := json.Unmarshal(line, &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		running.Add(1)
		go func() {
			defer running.Done()
			ended, err := perform(asked)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			outputLock.Lock()
			defer outputLock.Unlock()
			_ = output.Encode(ended)
		}()
	}
	running.Wait()
}
