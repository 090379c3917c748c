//! A scrape over HTTP: one page, one request a connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A scraper that takes longer is turned away.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a request's head at most.
const LONGEST: u64 = 16 << 10;

/// Serves `page` at `/metrics`, or the reason why it cannot be had, for as long as the process.
pub fn serve(
    listener: &TcpListener,
    content_type: &str,
    mut page: impl FnMut() -> Result<String, String>,
) {
    for stream in listener.incoming().flatten() {
        // A scraper that goes away is its own affair.
        if let Ok(path) = request(&stream) {
            let (status, body) = match path.as_deref() {
                Some("/metrics" | "/") => match page() {
                    Ok(page) => ("200 OK", page),
                    Err(reason) => ("503 Service Unavailable", reason + "\n"),
                },
                Some(_) => ("404 Not Found", "only /metrics is here\n".to_string()),
                None => ("405 Method Not Allowed", "only GET is answered\n".to_string()),
            };
            let _ = respond(&stream, status, content_type, &body);
        }
    }
}

/// The path that is asked for; `None`: not by GET.
fn request(stream: &TcpStream) -> io::Result<Option<String>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream.take(LONGEST));
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut words = first.split_whitespace();
    let path = words.next().filter(|&method| method == "GET").and(words.next());
    Ok(path.map(|path| path.split('?').next().unwrap_or_default().to_string()))
}

fn respond(mut stream: &TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let len = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_is_served_by_get_and_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ask = move |request: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let mut pages = ["here"].into_iter();
        let page = move || pages.next().map(str::to_string).ok_or_else(|| "over".to_string());
        std::thread::spawn(move || serve(&listener, "text", page));
        let page = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text\r\n"), "{page}");
        assert!(page.ends_with("Content-Length: 4\r\nConnection: close\r\n\r\nhere"), "{page}");
        assert!(ask("GET /else HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask("POST /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 405 "));
        let gone = ask("GET /metrics?x=1 HTTP/1.0\r\n\r\n");
        assert!(gone.starts_with("HTTP/1.1 503 ") && gone.ends_with("over\n"), "{gone}");
    }
}
