// A client of the SDK for Java, told by lines on stdin what to do: connect, list, call, count, cancel. It prints a line of
// JSON for each. Arguments: `mcp` or `sse`, the base URL, the path, the key, the client's name.

import io.modelcontextprotocol.client.McpAsyncClient;
import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.transport.HttpClientSseClientTransport;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.Implementation;
import io.modelcontextprotocol.spec.McpSchema.TextContent;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Mono;

public class Client {
  // The limit of a call; the SDK's own limit of 20 s is the same, but longer.
  static final Duration CALL_TIME = Duration.ofSeconds(15);
  static final AtomicInteger progress = new AtomicInteger();

  public static void main(String[] args) throws Exception {
    String endpoint = args[0], base = args[1], path = args[2], key = "Bearer " + args[3], name = args[4];
    McpClientTransport transport = endpoint.equals("sse")
        ? HttpClientSseClientTransport.builder(base).sseEndpoint(path)
            .addHttpRequestCustomizer((request, method, uri, body, context) -> request.header("Authorization", key)).build()
        : HttpClientStreamableHttpTransport.builder(base).endpoint(path)
            .addHttpRequestCustomizer((request, method, uri, body, context) -> request.header("Authorization", key)).build();
    McpAsyncClient client = McpClient.async(transport)
        .clientInfo(Implementation.builder(name, "1.0.0").build())
        .requestTimeout(CALL_TIME)
        .progressConsumer(told -> Mono.fromRunnable(progress::incrementAndGet))
        .build();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String step; (step = lines.readLine()) != null; ) {
      Map<String, Object> answer = new LinkedHashMap<>();
      try {
        switch (step) {
          case "connect" -> answer.put("revision", client.initialize().block().protocolVersion());
          case "list" -> answer.put("tools", client.listTools().block().tools().size());
          case "cancel" -> {
            var called = callTool(client, "hold", name).subscribe(result -> {}, error -> {});
            Thread.sleep(500);
            called.dispose();
          }
          default -> {
            progress.set(0);
            var result = callTool(client, step.equals("count") ? "count" : "echo", name).block();
            answer.put("text", ((TextContent) result.content().get(0)).text());
            answer.put("progress", progress.get());
          }
        }
      } catch (Exception error) {
        answer.put("error", String.valueOf(error.getMessage()));
      }
      System.out.println(jsonOf(answer));
    }
    System.exit(0);
  }

  static Mono<CallToolResult> callTool(McpAsyncClient client, String tool, String name) {
    return client.callTool(
        CallToolRequest.builder(tool).arguments(Map.of("client", name)).progressToken("progress").build());
  }

  static String jsonOf(Map<String, Object> answer) {
    StringBuilder text = new StringBuilder("{");
    answer.forEach((key, value) -> {
      if (text.length() > 1) text.append(',');
      text.append('"').append(key).append("\":");
      if (value instanceof Number) text.append(value);
      else text.append('"').append(value.toString().replaceAll("[\"\\\\\\p{Cntrl}]", " ")).append('"');
    });
    return text.append('}').toString();
  }
}
