// A client of the SDK for Java, told by lines on stdin what to do: connect, list, call, count, cancel, or ask with a
// request. It prints a line of JSON for each. Arguments: `mcp`, `sse` or `stdio`; the URL or the server's command; the key;
// the client's name.

import io.modelcontextprotocol.client.McpAsyncClient;
import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.transport.HttpClientSseClientTransport;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.client.transport.ServerParameters;
import io.modelcontextprotocol.client.transport.StdioClientTransport;
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.json.McpJsonMapper;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.GetPromptRequest;
import io.modelcontextprotocol.spec.McpSchema.Implementation;
import io.modelcontextprotocol.spec.McpSchema.ReadResourceRequest;
import io.modelcontextprotocol.spec.McpSchema.TextContent;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Mono;

public class Client {
  // The limit of a call; the SDK's own limit of 20 s is the same, but longer.
  static final Duration CALL_TIME = Duration.ofSeconds(15);
  static final McpJsonMapper JSON = McpJsonDefaults.getMapper();
  static final AtomicInteger progress = new AtomicInteger();

  public static void main(String[] args) throws Exception {
    String endpoint = args[0], url = args[1], key = "Bearer " + args[2], name = args[3];
    McpAsyncClient client = McpClient.async(transportOf(endpoint, url, key))
        .clientInfo(Implementation.builder(name, "1.0.0").build())
        .requestTimeout(CALL_TIME)
        .progressConsumer(told -> Mono.fromRunnable(progress::incrementAndGet))
        .build();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = lines.readLine()) != null; ) {
      String[] words = line.split(" ", 2);
      String step = words[0];
      Map<String, Object> answer = new LinkedHashMap<>();
      try {
        switch (step) {
          case "connect" -> answer.put("revision", client.initialize().block().protocolVersion());
          case "list" -> answer.put("tools", client.listTools().block().tools().size());
          case "ask" -> answer.put("result", ask(client, JSON.readValue(words[1], Map.class)).block());
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
      System.out.println(JSON.writeValueAsString(answer));
    }
    System.exit(0);
  }

  static Mono<CallToolResult> callTool(McpAsyncClient client, String tool, String name) {
    return client.callTool(
        CallToolRequest.builder(tool).arguments(Map.of("client", name)).progressToken("progress").build());
  }

  static McpClientTransport transportOf(String endpoint, String url, String key) {
    if (endpoint.equals("stdio")) {
      String[] words = url.split(" ");
      var parameters = ServerParameters.builder(words[0]).args(Arrays.copyOfRange(words, 1, words.length)).build();
      return new StdioClientTransport(parameters, JSON);
    }
    URI at = URI.create(url);
    String base = at.getScheme() + "://" + at.getAuthority();
    return endpoint.equals("sse")
        ? HttpClientSseClientTransport.builder(base).sseEndpoint(at.getPath())
            .addHttpRequestCustomizer((request, method, uri, body, context) -> request.header("Authorization", key)).build()
        : HttpClientStreamableHttpTransport.builder(base).endpoint(at.getPath())
            .addHttpRequestCustomizer((request, method, uri, body, context) -> request.header("Authorization", key)).build();
  }

  static Mono<?> ask(McpAsyncClient client, Map<?, ?> request) {
    Object params = request.get("params");
    return switch ((String) request.get("method")) {
      case "tools/list" -> client.listTools();
      case "prompts/list" -> client.listPrompts();
      case "resources/list" -> client.listResources();
      case "resources/templates/list" -> client.listResourceTemplates();
      case "tools/call" -> client.callTool(JSON.convertValue(params, CallToolRequest.class));
      case "prompts/get" -> client.getPrompt(JSON.convertValue(params, GetPromptRequest.class));
      default -> client.readResource(JSON.convertValue(params, ReadResourceRequest.class));
    };
  }
}
