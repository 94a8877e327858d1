// The same small server by the SDK for Java: without arguments on STDIO, with a port and `http` or `sse` by Tomcat.

import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.McpServer.SyncSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncPromptSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncResourceSpecification;
import io.modelcontextprotocol.server.transport.HttpServletSseServerTransportProvider;
import io.modelcontextprotocol.server.transport.HttpServletStreamableServerTransportProvider;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.GetPromptResult;
import io.modelcontextprotocol.spec.McpSchema.ProgressNotification;
import io.modelcontextprotocol.spec.McpSchema.Prompt;
import io.modelcontextprotocol.spec.McpSchema.PromptArgument;
import io.modelcontextprotocol.spec.McpSchema.PromptMessage;
import io.modelcontextprotocol.spec.McpSchema.ReadResourceResult;
import io.modelcontextprotocol.spec.McpSchema.Resource;
import io.modelcontextprotocol.spec.McpSchema.Role;
import io.modelcontextprotocol.spec.McpSchema.ServerCapabilities;
import io.modelcontextprotocol.spec.McpSchema.TextContent;
import io.modelcontextprotocol.spec.McpSchema.TextResourceContents;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import jakarta.servlet.http.HttpServlet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.catalina.Context;
import org.apache.catalina.Wrapper;
import org.apache.catalina.startup.Tomcat;

public class Server {
  public static void main(String[] args) throws Exception {
    if (args.length == 0) {
      complete(McpServer.sync(new StdioServerTransportProvider(McpJsonDefaults.getMapper())));
      return;
    }
    HttpServlet transport;
    if (args[1].equals("sse")) {
      var sse = HttpServletSseServerTransportProvider.builder().sseEndpoint("/sse").messageEndpoint("/message").build();
      complete(McpServer.sync(sse));
      transport = sse;
    } else {
      var http = HttpServletStreamableServerTransportProvider.builder().mcpEndpoint("/mcp").build();
      complete(McpServer.sync(http));
      transport = http;
    }
    Tomcat tomcat = new Tomcat();
    tomcat.setBaseDir(System.getProperty("java.io.tmpdir") + "/tomcat-" + ProcessHandle.current().pid());
    tomcat.setPort(Integer.parseInt(args[0]));
    tomcat.getConnector().setProperty("address", "127.0.0.1");
    Context context = tomcat.addContext("", null);
    Wrapper wrapper = Tomcat.addServlet(context, "mcp", transport);
    wrapper.setAsyncSupported(true);
    context.addServletMappingDecoded("/*", "mcp");
    tomcat.start();
    tomcat.getServer().await();
  }

  static void complete(SyncSpecification<?> specification) {
    specification
        .serverInfo("java-sdk", "1.0.0")
        .capabilities(ServerCapabilities.builder().tools(true).resources(false, true).prompts(true).build())
        .toolCall(tool("echo", Map.of("text", Map.of("type", "string"))),
            (exchange, request) -> text(String.valueOf(request.arguments().get("text"))))
        .toolCall(tool("fail", Map.of()),
            (exchange, request) -> CallToolResult.builder().addTextContent("it failed").isError(true).build())
        .toolCall(tool("wait", new TreeMap<>(Map.of("count", Map.of("type", "number"), "gapMs", Map.of("type", "number")))),
            (exchange, request) -> {
              int count = ((Number) request.arguments().get("count")).intValue();
              for (int i = 1; i <= count; i++) {
                pause(((Number) request.arguments().get("gapMs")).intValue());
                Object token = request.meta() == null ? null : request.meta().get("progressToken");
                if (token != null) exchange.progressNotification(new ProgressNotification(token, i, null, null));
              }
              return text("waited");
            })
        .resources(new SyncResourceSpecification(
            Resource.builder("test://note", "note").mimeType("text/plain").build(),
            (exchange, request) -> new ReadResourceResult(
                List.of(new TextResourceContents("test://note", "text/plain", "a note")))))
        .prompts(new SyncPromptSpecification(
            Prompt.builder("greet").arguments(List.of(new PromptArgument("name", null, true))).build(),
            (exchange, request) -> new GetPromptResult(null, List.of(new PromptMessage(
                Role.USER, new TextContent("Hello " + request.arguments().get("name")))))))
        .build();
  }

  static Tool tool(String name, Map<String, Object> properties) {
    return Tool.builder(name, new TreeMap<>(Map.of("type", "object", "properties", properties))).build();
  }

  static CallToolResult text(String text) {
    return CallToolResult.builder().addTextContent(text).build();
  }

  static void pause(int ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
