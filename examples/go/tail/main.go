// Command tail prints events as they come, and reconnects after a lost connection: go run ./tail PATTERN [AFTER]
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"
)

// An idle tail gets an empty line every 15 seconds. A connection that is silent for much longer is lost.
const silence = time.Minute

type line struct {
	EventID string
	Topic   string
	Content []byte // encoding/json decodes the Base64.
	// Set if a reorg removed events: the tail goes on with the events that the chain now has after this place.
	Resync *struct{ ID string }
}

// watched restarts the timer that ends a silent connection, with each read.
type watched struct {
	io.Reader
	end *time.Timer
}

func (w watched) Read(bytes []byte) (int, error) {
	n, err := w.Reader.Read(bytes)
	w.end.Reset(silence)
	return n, err
}

// isTransient reports whether another try may help. The status may be that of a proxy before the broker.
func isTransient(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// tail reads one connection until it ends, and moves the place after each event. The broker prefers the place to after, and accepts one that a reorg has
// removed; it would refuse such an eventId in after.
func tail(topic, after string, place *string) error {
	base := os.Getenv("STELE_URL")
	if base == "" {
		base = "http://127.0.0.1:8080"
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	end := time.AfterFunc(silence, cancel)
	defer end.Stop()
	query := url.Values{"topic": {topic}, "after": {after}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/tail?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("accept", "application/x-ndjson")
	if *place != "" {
		request.Header.Set("last-event-id", *place)
	}
	if key := os.Getenv("STELE_KEY"); key != "" {
		request.Header.Set("authorization", "Bearer "+key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		if !isTransient(response.StatusCode) {
			log.Fatalf("%s %s", response.Status, text)
		}
		return fmt.Errorf("%s %s", response.Status, text)
	}
	for lines := json.NewDecoder(watched{response.Body, end}); ; {
		var next line
		if err := lines.Decode(&next); err != nil {
			return err
		}
		if next.Resync != nil {
			*place = next.Resync.ID
		} else if next.EventID != "" {
			fmt.Println(next.EventID, next.Topic, string(next.Content))
			*place = next.EventID
		}
	}
}

func main() {
	after := "OFFSET_FIRST"
	if len(os.Args) > 2 {
		after = os.Args[2]
	}
	place := ""
	for {
		log.Print(tail(os.Args[1], after, &place))
		time.Sleep(time.Second)
	}
}
