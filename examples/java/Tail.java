import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;

/** java Tail.java PATTERN [AFTER]: prints events as they come, and reconnects after a lost connection. */
public class Tail {
  static final String URL = System.getenv().getOrDefault("STELE_URL", "http://127.0.0.1:8080");
  /** An idle tail gets a heartbeat every 15 seconds. A connection that is silent for much longer is lost. */
  static final int SILENCE_MS = 60_000;

  static String place;

  public static void main(String[] args) throws Exception {
    place = args.length > 1 ? args[1] : "OFFSET_FIRST";
    while (true) {
      try {
        tail(args[0]);
      } catch (IOException error) {
        System.err.println(error.getMessage());
      }
      Thread.sleep(1000);
    }
  }

  static void tail(String topic) throws IOException {
    var query = "?topic=" + URLEncoder.encode(topic, StandardCharsets.UTF_8);
    var connection = (HttpURLConnection) URI.create(URL + "/tail" + query).toURL().openConnection();
    connection.setConnectTimeout(SILENCE_MS);
    connection.setReadTimeout(SILENCE_MS);
    connection.setRequestProperty("last-event-id", place);
    var key = System.getenv("STELE_KEY");
    if (key != null) connection.setRequestProperty("authorization", "Bearer " + key);
    var status = connection.getResponseCode();
    if (status != 200) {
      var body = connection.getErrorStream();
      System.err.println(status + (body == null ? "" : " " + new String(body.readAllBytes(), StandardCharsets.UTF_8)));
      // Another try may help after these. The status may be that of a proxy before the broker.
      if (status == 408 || status == 429 || status >= 500) return;
      System.exit(1);
    }
    try (var lines = new BufferedReader(new InputStreamReader(connection.getInputStream(), StandardCharsets.UTF_8))) {
      print(lines);
    }
  }

  /** Prints Server-Sent Events. An event is complete only when an empty line follows. */
  static void print(BufferedReader lines) throws IOException {
    String id = place, type = "", data = "";
    for (var line = lines.readLine(); line != null; line = lines.readLine()) {
      if (line.startsWith("id: ")) id = line.substring(4);
      else if (line.startsWith("event: ")) type = line.substring(7);
      else if (line.startsWith("data: ")) data = line.substring(6);
      else if (line.isEmpty()) {
        if (type.isEmpty() && !data.isEmpty()) System.out.println(id + " " + data);
        if (System.out.checkError()) System.exit(1); // Nothing reads the output. println does not throw.
        place = id;
        type = data = "";
      }
    }
  }
}
