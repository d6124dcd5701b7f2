//! Makes gRPC calls with tonic, as lines of JSON on stdin say, and writes a line of JSON for each call that has ended.
//! The lines are described in tests/clients/adapters/driver-adapter.ts. Messages are bytes, so no .proto file is needed.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::Duration;

use base64::prelude::{Engine as _, BASE64_STANDARD};
use bytes::{Buf, BufMut};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::{AsciiMetadataKey, KeyAndValueRef, MetadataMap};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Deserialize, Serialize)]
struct Tls {
    ca: String,
    cert: Option<String>,
    key: Option<String>,
}

#[derive(Deserialize, Serialize)]
struct Target {
    address: String,
    tls: Option<Tls>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call {
    id: u64,
    target: Target,
    method: String,
    kind: String,
    requests: Vec<String>,
    #[serde(default)]
    metadata: HashMap<String, String>,
    timeout_ms: Option<u64>,
    cancel_after: Option<usize>,
    #[serde(default)]
    hold_open: bool,
    #[serde(default)]
    gzip: bool,
}

#[derive(Serialize)]
struct Outcome {
    id: u64,
    code: i32,
    message: String,
    responses: Vec<String>,
    headers: HashMap<String, String>,
    trailers: HashMap<String, String>,
}

/// Messages as they are.
#[derive(Clone, Copy, Default)]
struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = BytesCodec;
    type Decoder = BytesCodec;
    fn encoder(&mut self) -> BytesCodec {
        BytesCodec
    }
    fn decoder(&mut self) -> BytesCodec {
        BytesCodec
    }
}

impl Encoder for BytesCodec {
    type Item = Vec<u8>;
    type Error = Status;
    fn encode(&mut self, message: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&message);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Vec<u8>;
    type Error = Status;
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut message = vec![0; from.remaining()];
        from.copy_to_slice(&mut message);
        Ok(Some(message))
    }
}

static CHANNELS: Mutex<Option<HashMap<String, Channel>>> = Mutex::new(None);

fn channel_for(target: &Target) -> Result<Channel, Failure> {
    let key = serde_json::to_string(target)?;
    let mut channels = CHANNELS.lock().unwrap();
    let channels = channels.get_or_insert_default();
    if let Some(known) = channels.get(&key) {
        return Ok(known.clone());
    }
    let address = match (&target.tls, target.address.starts_with("unix:")) {
        (_, true) => target.address.clone(),
        (Some(_), _) => format!("https://{}", target.address),
        (None, _) => format!("http://{}", target.address),
    };
    let mut endpoint = Endpoint::from_shared(address)?;
    if let Some(tls) = &target.tls {
        let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(std::fs::read(&tls.ca)?));
        if let (Some(cert), Some(key)) = (&tls.cert, &tls.key) {
            config = config.identity(Identity::from_pem(std::fs::read(cert)?, std::fs::read(key)?));
        }
        endpoint = endpoint.tls_config(config.domain_name("localhost"))?;
    }
    let channel = endpoint.connect_lazy();
    channels.insert(key, channel.clone());
    Ok(channel)
}

fn with_metadata<T>(message: T, call: &Call) -> Result<Request<T>, Failure> {
    let mut request = Request::new(message);
    for (name, value) in &call.metadata {
        request.metadata_mut().insert(AsciiMetadataKey::from_str(name)?, value.parse()?);
    }
    if let Some(timeout_ms) = call.timeout_ms {
        request.set_timeout(Duration::from_millis(timeout_ms));
    }
    Ok(request)
}

async fn perform(call: Call) -> Result<Outcome, Failure> {
    let mut outcome = Outcome {
        id: call.id,
        code: 0,
        message: String::new(),
        responses: vec![],
        headers: HashMap::new(),
        trailers: HashMap::new(),
    };
    let ended = if call.kind == "unary" {
        ask(&call, &mut outcome).await?
    } else {
        converse(&call, &mut outcome).await?
    };
    if let Err(status) = ended {
        outcome.code = status.code() as i32;
        outcome.message = status.message().to_string();
        outcome.trailers = fields(status.metadata());
        if !status.details().is_empty() {
            outcome.trailers.insert("grpc-status-details-bin".into(), BASE64_STANDARD.encode(status.details()));
        }
    }
    Ok(outcome)
}

fn client_for(call: &Call) -> Result<Grpc<Channel>, Failure> {
    let client = Grpc::new(channel_for(&call.target)?).max_decoding_message_size(usize::MAX);
    Ok(if call.gzip { client.send_compressed(CompressionEncoding::Gzip) } else { client })
}

async fn ask(call: &Call, outcome: &mut Outcome) -> Result<Result<(), Status>, Failure> {
    let mut client = client_for(call)?;
    if let Err(error) = client.ready().await {
        return Ok(Err(Status::from_error(Box::new(error))));
    }
    let request = with_metadata(BASE64_STANDARD.decode(&call.requests[0])?, call)?;
    let path = http::uri::PathAndQuery::from_str(&call.method)?;
    Ok(client.unary(request, path, BytesCodec).await.map(|response| {
        outcome.headers = fields(response.metadata());
        outcome.responses.push(BASE64_STANDARD.encode(response.get_ref()));
    }))
}

async fn converse(call: &Call, outcome: &mut Outcome) -> Result<Result<(), Status>, Failure> {
    let mut client = client_for(call)?;
    if let Err(error) = client.ready().await {
        return Ok(Err(Status::from_error(Box::new(error))));
    }
    let requests: Result<Vec<_>, _> = call.requests.iter().map(|one| BASE64_STANDARD.decode(one)).collect();
    // While `hold` lives, so do the requests. tonic ends a call early once both its answers and its requests are dropped.
    let (hold, held) = tokio::sync::mpsc::channel(1);
    let hold = call.hold_open.then_some(hold);
    let sent = tokio_stream::iter(requests?).chain(ReceiverStream::new(held));
    let path = http::uri::PathAndQuery::from_str(&call.method)?;
    let mut answers = match client.streaming(with_metadata(sent, call)?, path, BytesCodec).await {
        Err(status) => return Ok(Err(status)),
        Ok(response) => {
            outcome.headers = fields(response.metadata());
            response.into_inner()
        }
    };
    loop {
        match answers.message().await {
            Err(status) => return Ok(Err(status)),
            Ok(None) => break,
            Ok(Some(message)) => outcome.responses.push(BASE64_STANDARD.encode(message)),
        }
        if Some(outcome.responses.len()) == call.cancel_after {
            drop(hold);
            return Ok(Err(Status::new(Code::Cancelled, "cancelled by the client")));
        }
    }
    if let Ok(Some(trailers)) = answers.trailers().await {
        outcome.trailers = fields(&trailers);
    }
    Ok(Ok(()))
}

fn fields(metadata: &MetadataMap) -> HashMap<String, String> {
    metadata
        .iter()
        .map(|field| match field {
            KeyAndValueRef::Ascii(name, value) => (name.to_string(), value.to_str().unwrap_or_default().to_string()),
            KeyAndValueRef::Binary(name, value) => {
                (name.to_string(), BASE64_STANDARD.encode(value.to_bytes().unwrap_or_default()))
            }
        })
        .collect()
}

/// Of tonic, as the lock file pins it.
fn version() -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let entry = lock.split("[[package]]").find(|entry| entry.contains("name = \"tonic\"\n")).unwrap_or_default();
    entry.split("version = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("unknown")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    if std::env::args().nth(1).as_deref() == Some("--version") {
        println!("{}", version());
        return Ok(());
    }
    let mut running = tokio::task::JoinSet::new();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let call: Call = serde_json::from_str(&line)?;
        running.spawn(async move {
            match perform(call).await {
                Ok(outcome) => println!("{}", serde_json::to_string(&outcome).unwrap()),
                Err(error) => {
                    eprintln!("{error}");
                    std::process::exit(1);
                }
            }
        });
    }
    while running.join_next().await.is_some() {}
    Ok(())
}
