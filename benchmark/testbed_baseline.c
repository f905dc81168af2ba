// SPDX-License-Identifier: Apache-2.0
// The least that a C program between a testbed and ROS 2 can do: what testbed_baseline.py does for images only, on rcl.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rosidl_runtime_c/primitives_sequence_functions.h>
#include <rosidl_runtime_c/string_functions.h>
#include <sensor_msgs/msg/image.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CONSTANTS = 48, WIDTH_AT = 8, HEIGHT_AT = 12, FLOATS = 28, ANSWER = 16, RECONNECT_US = 50000 };
static const char * const SIDES[] = {"left", "right"};
static const unsigned char NEUTRAL[ANSWER] = {[12] = 0x41, 0x1c, 0xf5, 0xc3};  // no rates, and a thrust of 9.81 N
static volatile sig_atomic_t is_over;

static void end(int number) { is_over = number; }

static bool receive(int testbed, void * buffer, size_t size)
{
  return recv(testbed, buffer, size, MSG_WAITALL) == (ssize_t)size;
}

static void converse(int testbed, rcl_publisher_t * publishers, sensor_msgs__msg__Image * images)
{
  unsigned char constants[CONSTANTS], floats[FLOATS];
  uint32_t width, height;
  if (!receive(testbed, constants, CONSTANTS)) return;
  memcpy(&width, constants + WIDTH_AT, sizeof width);
  memcpy(&height, constants + HEIGHT_AT, sizeof height);
  for (int side = 0; side < 2; side++) {
    images[side].width = ntohl(width);
    images[side].height = ntohl(height);
    images[side].step = 3 * ntohl(width);
    rosidl_runtime_c__uint8__Sequence__fini(&images[side].data);
    rosidl_runtime_c__uint8__Sequence__init(&images[side].data, (size_t)images[side].step * images[side].height);
  }
  while (receive(testbed, images[0].data.data, images[0].data.size) &&
         receive(testbed, images[1].data.data, images[1].data.size) && receive(testbed, floats, FLOATS)) {
    send(testbed, NEUTRAL, ANSWER, MSG_NOSIGNAL);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int side = 0; side < 2; side++) {
      images[side].header.stamp.sec = (int32_t)now.tv_sec;
      images[side].header.stamp.nanosec = (uint32_t)now.tv_nsec;
      if (rcl_publish(&publishers[side], &images[side], NULL) != RCL_RET_OK) rcl_reset_error();
    }
  }
}

int main(int count, char ** arguments)
{
  if (count < 3) return 2;  // port, namespace
  sigaction(SIGINT, &(struct sigaction){.sa_handler = end}, NULL);  // which interrupts what waits
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t init = rcl_get_zero_initialized_init_options();
  rcl_context_t context = rcl_get_zero_initialized_context();
  rcl_node_t node = rcl_get_zero_initialized_node();
  rcl_node_options_t node_options = rcl_node_get_default_options();
  if (rcl_init_options_init(&init, allocator) || rcl_init(0, NULL, &init, &context) ||
      rcl_node_init(&node, "baseline", arguments[2], &context, &node_options)) return 1;
  rcl_publisher_t publishers[] = {rcl_get_zero_initialized_publisher(), rcl_get_zero_initialized_publisher()};
  rcl_publisher_options_t options = rcl_publisher_get_default_options();  // reliable
  options.qos.depth = 1;
  sensor_msgs__msg__Image images[2];
  for (int side = 0; side < 2; side++) {
    char text[40];
    sensor_msgs__msg__Image__init(&images[side]);
    rosidl_runtime_c__String__assign(&images[side].encoding, "rgb8");
    snprintf(text, sizeof text, "%s_camera_optical_frame", SIDES[side]);
    rosidl_runtime_c__String__assign(&images[side].header.frame_id, text);
    snprintf(text, sizeof text, "%s/image_raw", SIDES[side]);
    if (rcl_publisher_init(
          &publishers[side], &node, ROSIDL_GET_MSG_TYPE_SUPPORT(sensor_msgs, msg, Image), text, &options)) return 1;
  }
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[1]))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  while (!is_over) {
    int testbed = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(testbed, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (!connect(testbed, (struct sockaddr *)&address, sizeof address)) converse(testbed, publishers, images);
    close(testbed);
    if (!is_over) usleep(RECONNECT_US);
  }
  for (int side = 0; side < 2; side++) {
    (void)!rcl_publisher_fini(&publishers[side], &node);
    sensor_msgs__msg__Image__fini(&images[side]);
  }
  return rcl_node_fini(&node) || rcl_shutdown(&context) || rcl_context_fini(&context);
}
