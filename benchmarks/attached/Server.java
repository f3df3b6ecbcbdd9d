// A server of Java: a pool of threads, and a lock that all of them take.
import java.io.*;
import java.net.*;
import java.util.concurrent.*;

public class Server {
	private static final Object lock = new Object();
	private static long answered;

	private static void serve(Socket connection) {
		try (connection; InputStream in = connection.getInputStream(); OutputStream out = connection.getOutputStream()) {
			byte[] line = new byte[4096];
			for (int n; (n = in.read(line)) > 0; out.write(line, 0, n))
				synchronized (lock) {
					answered++;
				}
		} catch (IOException gone) {
			// the client has closed it
		}
	}

	public static void main(String[] arguments) throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(8);
		try (ServerSocket listener = new ServerSocket(Integer.parseInt(arguments[0]), 50, InetAddress.getLoopbackAddress())) {
			for (;;) {
				Socket connection = listener.accept();
				pool.submit(() -> serve(connection));
			}
		}
	}
}
