# Stribeck on a ROS image: docker build --build-arg BASE=ros:jazzy-ros-base -t stribeck .
ARG BASE=ros:jazzy-ros-base
FROM ${BASE}
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-venv python3-numexpr python3-serial \
      ros-${ROS_DISTRO}-control-msgs ros-${ROS_DISTRO}-rosbag2-py ros-${ROS_DISTRO}-rosbag2-storage-mcap ros-${ROS_DISTRO}-launch-ros \
 && rm -rf /var/lib/apt/lists/*
# An environment that sees ROS: pip does not write into that of the system (PEP 668).
RUN python3 -m venv --system-site-packages /opt/stribeck
COPY . /src
RUN /opt/stribeck/bin/pip install --no-cache-dir '/src[fit]' && rm -rf /src
ENV PATH=/opt/stribeck/bin:${PATH} AMENT_PREFIX_PATH=/opt/stribeck
RUN printf '#!/bin/bash\nset -e\nsource /opt/ros/$ROS_DISTRO/setup.bash\nexport AMENT_PREFIX_PATH=/opt/stribeck:$AMENT_PREFIX_PATH\nexec "$@"\n' > /entry \
 && chmod +x /entry
ENTRYPOINT ["/entry"]
CMD ["stribeck"]
