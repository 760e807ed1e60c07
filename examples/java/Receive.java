import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.Base64;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** PORT=9000 SECRET=whsec_… java Receive.java: accepts callbacks with a valid signature (Standard Webhooks). */
public class Receive {
  static final byte[] KEY = Base64.getDecoder().decode(System.getenv("SECRET").replaceFirst("^whsec_", ""));
  static final int BODY_BYTES_MAX = 1 << 24;
  static final int TOLERANCE_SECONDS = 300;
  /** The JDK has no JSON parser. Patterns are enough here, because JSON escapes the quotes in values; a real receiver uses a JSON library. */
  static final Pattern PING = Pattern.compile("\"ping\":");
  static final Pattern EVENT_ID = Pattern.compile("\"eventId\":\"([^\"]*)\"");
  static final Pattern CONTENT = Pattern.compile("\"content\":\"([^\"]*)\"");

  public static void main(String[] args) throws IOException {
    var port = Integer.parseInt(System.getenv().getOrDefault("PORT", "9000"));
    var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.createContext("/", exchange -> {
      try (exchange) {
        exchange.sendResponseHeaders(receive(exchange), -1);
      }
    });
    server.start();
    System.out.println("listening " + port);
  }

  /** Returns the status to answer. With a status other than 2xx, the broker sends the event again. */
  static int receive(HttpExchange exchange) throws IOException {
    // OPTIONS gets this answer too: the broker asks for consent by it. With callbackConsent: require, the broker then sends a signed ping.
    if (!exchange.getRequestMethod().equals("POST")) return 405;
    var body = exchange.getRequestBody().readNBytes(BODY_BYTES_MAX + 1);
    if (body.length > BODY_BYTES_MAX) return 413;
    if (!isSigned(exchange, body)) return 401;
    var json = new String(body, StandardCharsets.UTF_8);
    if (PING.matcher(json).find()) return 204; // The broker asks whether it may call.
    var eventId = EVENT_ID.matcher(json);
    var content = CONTENT.matcher(json);
    var count = 0;
    for (; eventId.find() && content.find(); count++) { // A batch has several events.
      var text = new String(Base64.getDecoder().decode(content.group(1)), StandardCharsets.UTF_8);
      System.out.println(eventId.group(1) + " " + text);
    }
    return count == 0 ? 400 : 204;
  }

  static boolean isSigned(HttpExchange exchange, byte[] body) {
    var headers = exchange.getRequestHeaders();
    try {
      var time = headers.getFirst("webhook-timestamp");
      if (Math.abs(Instant.now().getEpochSecond() - Long.parseLong(time)) > TOLERANCE_SECONDS) return false;
      var mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(KEY, "HmacSHA256"));
      mac.update((headers.getFirst("webhook-id") + "." + time + ".").getBytes(StandardCharsets.UTF_8));
      var expected = ("v1," + Base64.getEncoder().encodeToString(mac.doFinal(body))).getBytes(StandardCharsets.UTF_8);
      for (var signature : headers.getFirst("webhook-signature").split(" ")) {
        if (MessageDigest.isEqual(expected, signature.getBytes(StandardCharsets.UTF_8))) return true;
      }
      return false;
    } catch (Exception error) {
      return false; // A header is missing or no number.
    }
  }
}
