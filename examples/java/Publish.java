import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** java Publish.java TOPIC CONTENT: opens a topic and publishes an event. */
public class Publish {
  static final String URL = System.getenv().getOrDefault("STELE_URL", "http://127.0.0.1:8080");
  static final HttpClient CLIENT = HttpClient.newHttpClient();

  public static void main(String[] args) throws Exception {
    call("open", "topic=" + encode(args[0]));
    var sent = call("publish", "topic=" + encode(args[0]) + "&content=" + encode(args[1]));
    // TIMEOUT: the broker does not know yet whether the event is on the chain.
    if (!sent.contains("\"status\":\"SUCCESS\"")) throw new IllegalStateException("publish: " + sent);
    System.out.println(sent);
  }

  static String call(String operation, String form) throws Exception {
    var request = HttpRequest.newBuilder(URI.create(URL + "/rest/" + operation))
        .timeout(Duration.ofSeconds(60))
        .header("content-type", "application/x-www-form-urlencoded")
        .POST(BodyPublishers.ofString(form));
    var key = System.getenv("STELE_KEY");
    if (key != null) request.header("authorization", "Bearer " + key);
    var answer = CLIENT.send(request.build(), BodyHandlers.ofString()).body();
    // REST answers a failure with status 200 and an object with a code.
    if (answer.startsWith("{\"code\":")) throw new IllegalStateException(operation + ": " + answer);
    return answer;
  }

  static String encode(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8);
  }
}
