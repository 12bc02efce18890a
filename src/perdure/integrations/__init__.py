"""perdure under the frameworks that people write agents with. Each adapter is a module of its own, and an extra:

perdure.integrations.langgraph        pip install 'perdure[langgraph]'
perdure.integrations.pydantic_ai      pip install 'perdure[pydantic-ai]'
perdure.integrations.openai_agents    pip install 'perdure[openai-agents]'
perdure.integrations.claude_agent     pip install 'perdure[claude-agent]'
perdure.integrations.agent_framework  pip install 'perdure[agent-framework]'
perdure.integrations.strands          pip install 'perdure[strands]'

An adapter uses the framework's public API only, and is imported only by the programs that use it.
"""
